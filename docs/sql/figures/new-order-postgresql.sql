-- TPC-C's New Order as a function of PostgreSQL, with the tables that it touches, to compare with the procedure `new_order` of Ordain's
-- workload `tpcc`: the same columns, units (money in cents, rates in basis points, times in microseconds), arguments and result.
-- Four warehouses, as the workload has them by default.

CREATE TABLE warehouse (
    w_id int PRIMARY KEY, w_name text, w_street_1 text, w_street_2 text, w_city text, w_state text, w_zip text, w_tax int, w_ytd bigint);
CREATE TABLE district (
    d_w_id int, d_id int, d_name text, d_street_1 text, d_street_2 text, d_city text, d_state text, d_zip text, d_tax int, d_ytd bigint,
    d_next_o_id int, PRIMARY KEY (d_w_id, d_id));
CREATE TABLE customer (
    c_w_id int, c_d_id int, c_id int, c_first text, c_middle text, c_last text, c_street_1 text, c_street_2 text, c_city text,
    c_state text, c_zip text, c_phone text, c_since bigint, c_credit text, c_credit_lim bigint, c_discount int, c_balance bigint,
    c_ytd_payment bigint, c_payment_cnt int, c_delivery_cnt int, c_data text, PRIMARY KEY (c_w_id, c_d_id, c_id));
CREATE TABLE new_order (no_w_id int, no_d_id int, no_o_id int, PRIMARY KEY (no_w_id, no_d_id, no_o_id));
CREATE TABLE orders (
    o_w_id int, o_d_id int, o_id int, o_c_id int, o_entry_d bigint, o_carrier_id int, o_ol_cnt int, o_all_local boolean,
    PRIMARY KEY (o_w_id, o_d_id, o_id));
CREATE TABLE order_line (
    ol_w_id int, ol_d_id int, ol_o_id int, ol_number int, ol_i_id int, ol_supply_w_id int, ol_delivery_d bigint, ol_quantity int,
    ol_amount bigint, ol_dist_info text, PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number));
CREATE TABLE item (i_id int PRIMARY KEY, i_im_id int, i_name text, i_price bigint, i_data text);
CREATE TABLE stock (
    s_w_id int, s_i_id int, s_quantity int, s_dist_01 text, s_dist_02 text, s_dist_03 text, s_dist_04 text, s_dist_05 text, s_dist_06 text,
    s_dist_07 text, s_dist_08 text, s_dist_09 text, s_dist_10 text, s_ytd int, s_order_cnt int, s_remote_cnt int, s_data text,
    PRIMARY KEY (s_w_id, s_i_id));

INSERT INTO warehouse SELECT w, 'name' || w, 'street', 'street', 'city', 'ST', '123411111', 1000 + w, 30000000 FROM generate_series(1, 4) w;
INSERT INTO district
    SELECT w, d, 'name' || d, 'street', 'street', 'city', 'ST', '123411111', 500 + d, 3000000, 3001
    FROM generate_series(1, 4) w, generate_series(1, 10) d;
INSERT INTO customer
    SELECT w, d, c, 'first' || c, 'OE', 'last' || c, 'street', 'street', 'city', 'ST', '123411111', '0123456789012345', 0,
        CASE WHEN c % 10 = 0 THEN 'BC' ELSE 'GC' END, 5000000, c % 5001, -1000, 1000, 1, 0, repeat('x', 400)
    FROM generate_series(1, 4) w, generate_series(1, 10) d, generate_series(1, 3000) c;
INSERT INTO item
    SELECT i, i % 10000, 'name' || i, 100 + i % 9901, CASE WHEN i % 10 = 0 THEN 'an ORIGINAL' ELSE 'another that is long enough' END
    FROM generate_series(1, 100000) i;
INSERT INTO stock
    SELECT w, i, 10 + i % 91, t, t, t, t, t, t, t, t, t, t, 0, 0, 0,
        CASE WHEN i % 10 = 0 THEN 'an ORIGINAL' ELSE 'another that is long enough' END
    FROM generate_series(1, 4) w, generate_series(1, 100000) i, (VALUES ('123456789012345678901234')) texts (t);

CREATE FUNCTION new_order(warehouse int, district int, customer int, entry_date bigint, lines json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    line record;
    stocked record;
    article record;
    buyer record;
    home record;
    warehouse_tax int;
    amount bigint;
    total bigint := 0;
    all_local boolean := true;
    number int := 0;
    results json[] := '{}';
BEGIN
    SELECT w_tax INTO STRICT warehouse_tax FROM warehouse w WHERE w_id = warehouse;
    SELECT c_discount, c_last, c_credit INTO STRICT buyer FROM customer c
        WHERE c_w_id = warehouse AND c_d_id = district AND c_id = customer;
    UPDATE district d SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = warehouse AND d_id = district
        RETURNING d_next_o_id - 1 AS order_id, d_tax INTO STRICT home;
    FOR line IN SELECT * FROM json_to_recordset(lines) AS l (item int, supply_warehouse int, quantity int) LOOP
        number := number + 1;
        all_local := all_local AND line.supply_warehouse = warehouse;
        SELECT i_price, i_name, i_data INTO article FROM item WHERE i_id = line.item;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'there is no item %', line.item;
        END IF;
        UPDATE stock SET
            s_quantity = CASE WHEN s_quantity >= line.quantity + 10 THEN s_quantity - line.quantity
                ELSE s_quantity - line.quantity + 91 END,
            s_ytd = s_ytd + line.quantity,
            s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + (line.supply_warehouse <> warehouse)::int
            WHERE s_w_id = line.supply_warehouse AND s_i_id = line.item
            RETURNING s_quantity, s_data, CASE district
                WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05
                WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END AS info
            INTO STRICT stocked;
        amount := article.i_price * line.quantity;
        total := total + amount;
        INSERT INTO order_line VALUES (
            warehouse, district, home.order_id, number, line.item, line.supply_warehouse, NULL, line.quantity, amount, stocked.info);
        results := results || json_build_object(
            'item_name', article.i_name, 'stock_quantity', stocked.s_quantity,
            'brand_generic', CASE WHEN article.i_data LIKE '%ORIGINAL%' AND stocked.s_data LIKE '%ORIGINAL%' THEN 'B' ELSE 'G' END,
            'price', article.i_price, 'amount', amount);
    END LOOP;
    INSERT INTO orders VALUES (warehouse, district, home.order_id, customer, entry_date, NULL, number, all_local);
    INSERT INTO new_order VALUES (warehouse, district, home.order_id);
    RETURN json_build_object(
        'order', home.order_id, 'customer_last', buyer.c_last, 'customer_credit', buyer.c_credit, 'discount', buyer.c_discount,
        'warehouse_tax', warehouse_tax, 'district_tax', home.d_tax,
        'total', total * (10000 - buyer.c_discount) * (10000 + warehouse_tax + home.d_tax) / 100000000,
        'lines', to_json(results));
END $$;

ANALYZE;

//! The tables of clause 1.3.1, and the numbers of the columns that procedures and checks touch.

use ordain_db::data::{ColumnType, DataError, Schema, SchemaBuilder, Table, TableBuilder};

use super::Layout;

use ColumnType::{Bool, Int32, Int64, Text};

/// Handles of all tables.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    pub(crate) warehouse: Table,
    pub(crate) district: Table,
    pub(crate) customer: Table,
    /// Customers by district and name: a key and nothing else. No transaction changes it (CAL-68).
    pub(crate) customer_by_name: Table,
    pub(crate) history: Table,
    pub(crate) new_order: Table,
    pub(crate) orders: Table,
    /// Orders by customer, the newest first: a key and nothing else. Kept up only where the mix has Order-Status.
    pub(crate) orders_by_customer: Table,
    pub(crate) order_line: Table,
    pub(crate) item: Table,
    pub(crate) stock: Table,
}

/// Columns of `warehouse`.
pub(crate) mod warehouse {
    pub(crate) const NAME: usize = 1;
    pub(crate) const TAX: usize = 7;
    pub(crate) const YTD: usize = 8;
}

/// Columns of `district`.
pub(crate) mod district {
    pub(crate) const NAME: usize = 2;
    pub(crate) const TAX: usize = 8;
    pub(crate) const YTD: usize = 9;
    pub(crate) const NEXT_ORDER: usize = 10;
}

/// Columns of `customer`.
pub(crate) mod customer {
    pub(crate) const FIRST: usize = 3;
    pub(crate) const MIDDLE: usize = 4;
    pub(crate) const LAST: usize = 5;
    pub(crate) const SINCE: usize = 12;
    pub(crate) const CREDIT: usize = 13;
    pub(crate) const CREDIT_LIMIT: usize = 14;
    pub(crate) const DISCOUNT: usize = 15;
    pub(crate) const BALANCE: usize = 16;
    pub(crate) const YTD_PAYMENT: usize = 17;
    pub(crate) const PAYMENT_COUNT: usize = 18;
    pub(crate) const DELIVERY_COUNT: usize = 19;
    pub(crate) const DATA: usize = 20;
}

/// Columns of `history`.
pub(crate) mod history {
    pub(crate) const AMOUNT: usize = 7;
}

/// Columns of `orders`.
pub(crate) mod orders {
    pub(crate) const CUSTOMER: usize = 3;
    pub(crate) const ENTRY_DATE: usize = 4;
    pub(crate) const CARRIER: usize = 5;
    pub(crate) const LINE_COUNT: usize = 6;
}

/// Columns of `order_line`.
pub(crate) mod order_line {
    pub(crate) const ITEM: usize = 4;
    pub(crate) const SUPPLY_WAREHOUSE: usize = 5;
    pub(crate) const DELIVERY_DATE: usize = 6;
    pub(crate) const QUANTITY: usize = 7;
    pub(crate) const AMOUNT: usize = 8;
}

/// Columns of `item`.
pub(crate) mod item {
    pub(crate) const NAME: usize = 2;
    pub(crate) const PRICE: usize = 3;
    pub(crate) const DATA: usize = 4;
}

/// Columns of `stock`.
pub(crate) mod stock {
    pub(crate) const QUANTITY: usize = 2;
    /// `s_dist_01`; the other districts' columns follow.
    pub(crate) const DISTRICT_01: usize = 3;
    pub(crate) const YTD: usize = 13;
    pub(crate) const ORDER_COUNT: usize = 14;
    pub(crate) const REMOTE_COUNT: usize = 15;
    pub(crate) const DATA: usize = 16;
}

fn columns(table: TableBuilder, columns: &[(&str, ColumnType)]) -> TableBuilder {
    columns.iter().fold(table, |table, (name, column_type)| table.column(name, *column_type))
}

/// Street, city, state and zip code, under a prefix.
fn address(table: TableBuilder, prefix: &str) -> TableBuilder {
    let names = ["street_1", "street_2", "city", "state", "zip"];
    names.iter().fold(table, |table, name| table.column(&format!("{prefix}_{name}"), Text))
}

/// Builds all tables, with rows spread over partitions as the layout says.
pub(crate) fn build(by: Layout) -> Result<(Schema, Tables), DataError> {
    let mut schema = SchemaBuilder::new();
    let tables = Tables {
        warehouse: schema.table(warehouse_table(by))?,
        district: schema.table(district_table(by))?,
        customer: schema.table(customer_table(by))?,
        customer_by_name: schema.table(customer_by_name_table(by))?,
        history: schema.table(history_table(by))?,
        new_order: schema.table(new_order_table(by))?,
        orders: schema.table(orders_table(by))?,
        order_line: schema.table(order_line_table(by))?,
        item: schema.table(item_table())?,
        stock: schema.table(stock_table(by))?,
        // After the others, whose numbers stay what they were without it.
        orders_by_customer: schema.table(orders_by_customer_table(by))?,
    };
    Ok((schema.finish(), tables))
}

fn warehouse_table(by: Layout) -> TableBuilder {
    let table = columns(Table::builder("warehouse"), &[("w_id", Int32), ("w_name", Text)]);
    let table = columns(address(table, "w"), &[("w_tax", Int32), ("w_ytd", Int64)]).primary_key(&["w_id"]);
    match by {
        Layout::Warehouses => table.partition_by_column("w_id"),
        Layout::DistrictsAndItems => table.replicated(),
    }
}

fn district_table(by: Layout) -> TableBuilder {
    let table = columns(Table::builder("district"), &[("d_w_id", Int32), ("d_id", Int32), ("d_name", Text)]);
    let table = address(table, "d");
    let table = columns(table, &[("d_tax", Int32), ("d_ytd", Int64), ("d_next_o_id", Int32)]);
    table.primary_key(&["d_w_id", "d_id"]).partition_by_column(by.column("d_w_id", "d_id"))
}

fn customer_table(by: Layout) -> TableBuilder {
    let table = columns(
        Table::builder("customer"),
        &[
            ("c_w_id", Int32),
            ("c_d_id", Int32),
            ("c_id", Int32),
            ("c_first", Text),
            ("c_middle", Text),
            ("c_last", Text),
        ],
    );
    let table = columns(
        address(table, "c"),
        &[
            ("c_phone", Text),
            ("c_since", Int64),
            ("c_credit", Text),
            ("c_credit_lim", Int64),
            ("c_discount", Int32),
            ("c_balance", Int64),
            ("c_ytd_payment", Int64),
            ("c_payment_cnt", Int32),
            ("c_delivery_cnt", Int32),
            ("c_data", Text),
        ],
    );
    table.primary_key(&["c_w_id", "c_d_id", "c_id"]).partition_by_column(by.column("c_w_id", "c_d_id"))
}

fn customer_by_name_table(by: Layout) -> TableBuilder {
    let key = ["c_w_id", "c_d_id", "c_last", "c_first", "c_id"];
    let types = [Int32, Int32, Text, Text, Int32];
    let table = Table::builder("customer_by_name");
    let table =
        key.iter().zip(types).fold(table, |table, (name, column_type)| table.column(name, column_type));
    table.primary_key(&key).partition_by_column(by.column("c_w_id", "c_d_id"))
}

fn history_table(by: Layout) -> TableBuilder {
    columns(
        Table::builder("history"),
        &[
            ("h_w_id", Int32),
            ("h_d_id", Int32),
            ("h_c_w_id", Int32),
            ("h_c_d_id", Int32),
            ("h_c_id", Int32),
            ("h_number", Int64),
            ("h_date", Int64),
            ("h_amount", Int64),
            ("h_data", Text),
        ],
    )
    .primary_key(&["h_w_id", "h_d_id", "h_c_w_id", "h_c_d_id", "h_c_id", "h_number"])
    .partition_by_column(by.column("h_w_id", "h_d_id"))
}

fn new_order_table(by: Layout) -> TableBuilder {
    columns(Table::builder("new_order"), &[("no_w_id", Int32), ("no_d_id", Int32), ("no_o_id", Int32)])
        .primary_key(&["no_w_id", "no_d_id", "no_o_id"])
        .partition_by_column(by.column("no_w_id", "no_d_id"))
}

fn orders_table(by: Layout) -> TableBuilder {
    let table = columns(
        Table::builder("orders"),
        &[("o_w_id", Int32), ("o_d_id", Int32), ("o_id", Int32), ("o_c_id", Int32), ("o_entry_d", Int64)],
    );
    columns(table.nullable("o_carrier_id", Int32), &[("o_ol_cnt", Int32), ("o_all_local", Bool)])
        .primary_key(&["o_w_id", "o_d_id", "o_id"])
        .partition_by_column(by.column("o_w_id", "o_d_id"))
}

fn orders_by_customer_table(by: Layout) -> TableBuilder {
    // The order's number with its sign turned: the first row of a customer is the newest order.
    let key = ["o_w_id", "o_d_id", "o_c_id", "minus_o_id"];
    columns(Table::builder("orders_by_customer"), &key.map(|name| (name, Int32)))
        .primary_key(&key)
        .partition_by_column(by.column("o_w_id", "o_d_id"))
}

fn order_line_table(by: Layout) -> TableBuilder {
    let table = columns(
        Table::builder("order_line"),
        &[
            ("ol_w_id", Int32),
            ("ol_d_id", Int32),
            ("ol_o_id", Int32),
            ("ol_number", Int32),
            ("ol_i_id", Int32),
            ("ol_supply_w_id", Int32),
        ],
    );
    let table = table.nullable("ol_delivery_d", Int64);
    columns(table, &[("ol_quantity", Int32), ("ol_amount", Int64), ("ol_dist_info", Text)])
        .primary_key(&["ol_w_id", "ol_d_id", "ol_o_id", "ol_number"])
        .partition_by_column(by.column("ol_w_id", "ol_d_id"))
}

fn item_table() -> TableBuilder {
    columns(
        Table::builder("item"),
        &[("i_id", Int32), ("i_im_id", Int32), ("i_name", Text), ("i_price", Int64), ("i_data", Text)],
    )
    .primary_key(&["i_id"])
    .replicated()
}

fn stock_table(by: Layout) -> TableBuilder {
    let table =
        columns(Table::builder("stock"), &[("s_w_id", Int32), ("s_i_id", Int32), ("s_quantity", Int32)]);
    let districts = (1..=10).map(|district| format!("s_dist_{district:02}"));
    let table = districts.fold(table, |table, name| table.column(&name, Text));
    let table = columns(
        table,
        &[("s_ytd", Int32), ("s_order_cnt", Int32), ("s_remote_cnt", Int32), ("s_data", Text)],
    )
    .primary_key(&["s_w_id", "s_i_id"]);
    match by {
        Layout::Warehouses => table.partition_by_column("s_w_id"),
        // Not by the number itself: numbers are drawn by an `or` of two (clause 2.1.6), so that those with many ones are ordered most,
        // and modulo eight partitions one of these would have 3.4 times its share.
        Layout::DistrictsAndItems => table.partition_by_hash(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_numbers_name_their_columns() {
        let (_, tables) = build(Layout::Warehouses).unwrap();
        for (table, name, number) in [
            (&tables.warehouse, "w_name", warehouse::NAME),
            (&tables.warehouse, "w_tax", warehouse::TAX),
            (&tables.warehouse, "w_ytd", warehouse::YTD),
            (&tables.district, "d_name", district::NAME),
            (&tables.district, "d_tax", district::TAX),
            (&tables.district, "d_ytd", district::YTD),
            (&tables.district, "d_next_o_id", district::NEXT_ORDER),
            (&tables.customer, "c_first", customer::FIRST),
            (&tables.customer, "c_middle", customer::MIDDLE),
            (&tables.customer, "c_last", customer::LAST),
            (&tables.customer, "c_since", customer::SINCE),
            (&tables.customer, "c_credit", customer::CREDIT),
            (&tables.customer, "c_credit_lim", customer::CREDIT_LIMIT),
            (&tables.customer, "c_discount", customer::DISCOUNT),
            (&tables.customer, "c_balance", customer::BALANCE),
            (&tables.customer, "c_ytd_payment", customer::YTD_PAYMENT),
            (&tables.customer, "c_payment_cnt", customer::PAYMENT_COUNT),
            (&tables.customer, "c_delivery_cnt", customer::DELIVERY_COUNT),
            (&tables.customer, "c_data", customer::DATA),
            (&tables.history, "h_amount", history::AMOUNT),
            (&tables.orders, "o_c_id", orders::CUSTOMER),
            (&tables.orders, "o_entry_d", orders::ENTRY_DATE),
            (&tables.orders, "o_carrier_id", orders::CARRIER),
            (&tables.orders, "o_ol_cnt", orders::LINE_COUNT),
            (&tables.order_line, "ol_i_id", order_line::ITEM),
            (&tables.order_line, "ol_delivery_d", order_line::DELIVERY_DATE),
            (&tables.order_line, "ol_amount", order_line::AMOUNT),
            (&tables.order_line, "ol_supply_w_id", order_line::SUPPLY_WAREHOUSE),
            (&tables.order_line, "ol_quantity", order_line::QUANTITY),
            (&tables.item, "i_name", item::NAME),
            (&tables.item, "i_price", item::PRICE),
            (&tables.item, "i_data", item::DATA),
            (&tables.stock, "s_quantity", stock::QUANTITY),
            (&tables.stock, "s_dist_01", stock::DISTRICT_01),
            (&tables.stock, "s_dist_10", stock::DISTRICT_01 + 9),
            (&tables.stock, "s_ytd", stock::YTD),
            (&tables.stock, "s_order_cnt", stock::ORDER_COUNT),
            (&tables.stock, "s_remote_cnt", stock::REMOTE_COUNT),
            (&tables.stock, "s_data", stock::DATA),
        ] {
            assert_eq!(table.column(name).unwrap(), number, "{name}");
        }
    }
}

-- Each transaction of the script tpcb-like has added one amount to an account, a teller and a branch, and written it down.
SELECT count(*) AS written,
    sum(delta) = (SELECT sum(abalance) FROM pgbench_accounts) AS accounts,
    sum(delta) = (SELECT sum(tbalance) FROM pgbench_tellers) AS tellers,
    sum(delta) = (SELECT sum(bbalance) FROM pgbench_branches) AS branches
FROM pgbench_history;

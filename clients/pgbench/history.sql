-- The script simple-update leaves tellers and branches alone.
SELECT count(*) AS written, sum(delta) = (SELECT sum(abalance) FROM pgbench_accounts) AS accounts
FROM pgbench_history;
SELECT sum(bbalance) = (SELECT sum(tbalance) FROM pgbench_tellers) AS branches FROM pgbench_branches;

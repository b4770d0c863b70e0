CREATE TABLE orders(id INTEGER PRIMARY KEY, customer TEXT, item TEXT, amount INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)
INSERT INTO orders
SELECT i, printf('customer-%d', i * 7919 % 9973), printf('item-%05d', i * 31 % 4001), i % 1000 FROM n;
CREATE INDEX by_customer ON orders(customer, item);
SELECT count(*), sum(spent)
FROM (SELECT customer, sum(amount) AS spent FROM orders GROUP BY customer HAVING spent > 100);
SELECT item, group_concat(customer) FROM orders WHERE item < 'item-00050'
GROUP BY item ORDER BY 2 DESC LIMIT 1 OFFSET 40;
SELECT count(*) FROM orders a JOIN orders b ON a.customer = b.customer AND a.id + 9973 = b.id;

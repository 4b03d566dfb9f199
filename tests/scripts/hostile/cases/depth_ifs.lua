-- Tries: 100,000 conditions in each other.
-- Expects: error
@{if x then  * 100000}@{end  * 100000}

-- Tries: 100,000 blocks in each other.
-- Expects: error
@{do  * 100000}@{end  * 100000}

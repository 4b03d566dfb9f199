-- Tries: 100,000 branches beside each other.
-- Expects: either
local x
if x == 0 then @{elseif x == 1 then  * 100000} end
return 1

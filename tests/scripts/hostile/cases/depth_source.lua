-- Tries: a source of 8 MB.
-- Expects: either
@{local x = 1 do x = x + 1 end  * 100}
--[[ @{remark  * 1000000} ]]
return 1

-- Tries: to yield out of the script into the host.
-- Expects: error
coroutine.yield(1, 2, 3)
return 1

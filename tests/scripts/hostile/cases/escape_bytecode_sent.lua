-- Tries: to send bytecode as the script itself.
-- Expects: error
@{\x1bLJ * 1}

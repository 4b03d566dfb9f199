-- Tries: to walk into functions of the host.
-- Expects: error
return debug.getregistry()

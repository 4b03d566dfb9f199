-- Tries: to get the full libraries from the registry of modules.
-- Expects: error
return package.loaded.io.open('/etc/passwd'):read('*a')

-- Tries: to run a command.
-- Expects: error
return os.execute('touch /tmp/semel_hostile_was_here')

-- Tries: to define the function of another script by its name.
-- Expects: either
rawset(_G, 'f_e0e1f9fabfc9d4800c877a703b823ac0578ff8db', function() return 'trapped' end)
return 1

// Boost.JSON is used without its library file: this unit is where its code is compiled.
#include <boost/json/src.hpp>

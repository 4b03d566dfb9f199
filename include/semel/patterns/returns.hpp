// What a function that runs once may return. A value that stands for work which is still to be done
// is no result: the function's body has not ended, and the work may never run.
#pragma once

#include <coroutine>
#include <memory>
#include <optional>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "semel/result.hpp"

namespace semel::detail {

template <class T>
concept Awaitable = requires(T& value) {
  value.await_ready();
}
|| requires(T& value) {
  value.operator co_await();
}
|| requires(T& value) {
  operator co_await(value);
};
/// std::future, std::shared_future, and others with their names.
template <class T>
concept FutureLike = requires(T& value) {
  value.get();
  value.wait();
  value.valid();
};
/// std::packaged_task and std::promise.
template <class T>
concept PromiseLike = requires(T& value) {
  value.get_future();
};
/// A function that was not called yet: a lambda, a pointer, std::function and their like.
template <class T>
concept Uncalled = std::is_invocable_v<T&> || std::is_member_pointer_v<T> ||
                   (std::is_pointer_v<T>&& std::is_function_v<std::remove_pointer_t<T>>) ||
                   requires {
  &T::operator();
}
|| requires(T& value) {
  value.target_type();
};
/// A range whose elements are made when they are asked for. std::string_view and std::span are not.
template <class T>
concept LazyRange = std::ranges::view<T> && !std::ranges::contiguous_range<T>;

template <class T>
        struct LazyValue : std::bool_constant < Awaitable<T> ||
    FutureLike<T> || PromiseLike<T> || Uncalled<T> || requires {
  typename std::coroutine_traits<T>::promise_type;
} > {};
template <class T>
requires(std::ranges::view<T>) struct LazyValue<T> : std::bool_constant<LazyRange<T>> {
};
// What holds or owns such a value is one.
template <class T>
struct LazyValue<std::optional<T>> : LazyValue<T> {};
template <class T>
struct LazyValue<Result<T>> : LazyValue<T> {};
template <class T>
struct LazyValue<std::unique_ptr<T>> : LazyValue<T> {};
template <class T>
struct LazyValue<std::shared_ptr<T>> : LazyValue<T> {};
template <class T, class U>
struct LazyValue<std::pair<T, U>> : std::bool_constant<LazyValue<T>::value || LazyValue<U>::value> {
};
template <class... T>
struct LazyValue<std::tuple<T...>> : std::disjunction<LazyValue<T>...> {};
template <class... T>
struct LazyValue<std::variant<T...>> : std::disjunction<LazyValue<T>...> {};
template <class T>
requires(std::ranges::range<T> && !std::ranges::view<T> &&
         !std::is_same_v<std::ranges::range_value_t<T>, T>) struct LazyValue<T>
    : LazyValue<std::ranges::range_value_t<T>> {
};

template <class T>
inline constexpr bool is_lazy = LazyValue<std::remove_cvref_t<T>>::value;
template <>
inline constexpr bool is_lazy<void> = false;

/// A value that converts to bool, or that is an enumeration, is a verdict in disguise: within a
/// Result it would be dropped, whatever it says. A number or a text is not.
template <class T>
concept SaysSomething = std::is_enum_v<T> || std::is_same_v<T, bool> ||
    (std::is_class_v<T>&& std::is_constructible_v<bool, const T&>);
template <class T>
inline constexpr bool is_plain_result = false;
template <class T>
inline constexpr bool is_plain_result<Result<T>> = !SaysSomething<T>;

/// Its truth says whether the function has done its work. Nothing else does: a number, an
/// std::error_code, a pointer or an std::optional that converts to bool may mean the opposite.
template <class T>
concept SaysWhetherDone = std::is_void_v<T> || std::is_same_v<T, bool> ||
    std::is_same_v<T, Status> || std::is_same_v<T, Result<bool>> || is_plain_result<T>;

}  // namespace semel::detail

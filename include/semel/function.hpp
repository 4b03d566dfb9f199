// A callable as a parameter or a member, as std::function is, whose header would add half to the
// cost of each of ours.
#pragma once

#include <concepts>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace semel {

template <class Signature>
class Function;

/// Takes whatever can be called with `Args`, and std::function with it. What takes up to three
/// pointers is held in place. An empty one does nothing and returns a `Result()`.
template <class Result, class... Args>
class Function<Result(Args...)> {
 public:
  Function() noexcept {}  // not `= default`: a const one may be empty
  Function(std::nullptr_t) noexcept {}
  /// Throws what copying `callable` throws, and std::bad_alloc if it is too large to lie in place.
  template <class Callable>
  requires(!std::same_as<std::remove_cvref_t<Callable>, Function> &&
           std::is_invocable_r_v<Result, std::decay_t<Callable>&, Args...> &&
           std::copy_constructible<std::decay_t<Callable>>) Function(Callable&& callable) {
    using Held = std::decay_t<Callable>;
    if constexpr (std::is_pointer_v<Held> || std::is_assignable_v<Held&, std::nullptr_t>) {
      if (callable == nullptr) return;
    }
    if constexpr (fits<Held>) {
      ::new (static_cast<void*>(room_)) Held(std::forward<Callable>(callable));
    } else {
      ::new (static_cast<void*>(room_)) Held*(new Held(std::forward<Callable>(callable)));
    }
    actions_ = &actions_of<Held>;
  }
  Function(const Function& other) {
    if (other.actions_ != nullptr) other.actions_->copy(other.room_, room_);
    actions_ = other.actions_;
  }
  Function(Function&& other) noexcept { take(other); }
  Function& operator=(Function other) noexcept {
    clear();
    take(other);
    return *this;
  }
  ~Function() { clear(); }

  [[nodiscard]] explicit operator bool() const noexcept { return actions_ != nullptr; }
  [[nodiscard]] friend bool operator==(const Function& function, std::nullptr_t) noexcept {
    return function.actions_ == nullptr;
  }
  Result operator()(Args... args) const {
    if (actions_ == nullptr) return Result();
    return actions_->call(room_, std::forward<Args>(args)...);
  }

 private:
  struct Actions {
    Result (*call)(void* room, Args&&... args);
    void (*copy)(const void* from, void* to);
    void (*move)(void* from, void* to) noexcept;  // `from` holds nothing afterwards
    void (*destroy)(void* room) noexcept;
  };
  static constexpr std::size_t room_bytes = 3 * sizeof(void*);
  template <class Held>
  static constexpr bool fits = std::is_nothrow_move_constructible_v<Held> &&
                               sizeof(Held) <= room_bytes && alignof(Held) <= alignof(void*);
  template <class Held>
  [[nodiscard]] static Held& held(const void* room) noexcept {
    void* const at = const_cast<void*>(room);
    if constexpr (fits<Held>) {
      return *std::launder(static_cast<Held*>(at));
    } else {
      return **std::launder(static_cast<Held**>(at));
    }
  }
  template <class Held>
  static constexpr Actions actions_of{.call = [](void* room, Args&&... args) -> Result {
                                        if constexpr (std::is_void_v<Result>) {
                                          held<Held>(room)(std::forward<Args>(args)...);
                                        } else {
                                          return held<Held>(room)(std::forward<Args>(args)...);
                                        }
                                      },
                                      .copy =
                                          [](const void* from, void* to) {
                                            if constexpr (fits<Held>) {
                                              ::new (to) Held(std::as_const(held<Held>(from)));
                                            } else {
                                              ::new (to)
                                                  Held*(new Held(std::as_const(held<Held>(from))));
                                            }
                                          },
                                      .move =
                                          [](void* from, void* to) noexcept {
                                            if constexpr (fits<Held>) {
                                              ::new (to) Held(std::move(held<Held>(from)));
                                              held<Held>(from).~Held();
                                            } else {
                                              ::new (to) Held*(&held<Held>(from));
                                            }
                                          },
                                      .destroy =
                                          [](void* room) noexcept {
                                            if constexpr (fits<Held>) {
                                              held<Held>(room).~Held();
                                            } else {
                                              delete &held<Held>(room);
                                            }
                                          }};

  void take(Function& other) noexcept {
    actions_ = std::exchange(other.actions_, nullptr);
    if (actions_ != nullptr) actions_->move(other.room_, room_);
  }
  void clear() noexcept {
    if (const Actions* const actions = std::exchange(actions_, nullptr)) actions->destroy(room_);
  }

  const Actions* actions_ = nullptr;
  alignas(void*) mutable unsigned char room_[room_bytes];
};

}  // namespace semel

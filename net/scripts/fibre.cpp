#include "net/scripts/fibre.hpp"

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstddef>
#include <utility>

// Sanitizers track the stack and must be notified of each switch.
#if defined(__SANITIZE_ADDRESS__)
#define SEMEL_FIBRE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SEMEL_FIBRE_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define SEMEL_FIBRE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SEMEL_FIBRE_TSAN 1
#endif
#endif
#if defined(SEMEL_FIBRE_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(SEMEL_FIBRE_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace semel::net {
namespace {

// Libraries of scripts recurse within bounds of their own that are far below this; pages that are
// not touched cost no memory. A guard page lies below.
constexpr std::size_t stack_bytes = std::size_t{1} << 20;

}  // namespace

class Fibre::Impl {
 public:
  Impl() = default;
  ~Impl() {
    if (!has_begun_) return;
    ends_ = true;
    static_cast<void>(to_fibre());
#if defined(SEMEL_FIBRE_TSAN)
    __tsan_destroy_fiber(tsan_fibre_);
#endif
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool run(Work work, void* argument) {
    work_ = work;
    argument_ = argument;
    has_returned_ = false;
    if (!has_begun_) begin();
    return to_fibre();
  }
  bool to_fibre() {
#if defined(SEMEL_FIBRE_TSAN)
    tsan_caller_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(tsan_fibre_, 0);
#endif
#if defined(SEMEL_FIBRE_ASAN)
    __sanitizer_start_switch_fiber(&caller_fake_, stack_bottom_, stack_size_);
#endif
    fibre_ = std::move(fibre_).resume();
#if defined(SEMEL_FIBRE_ASAN)
    __sanitizer_finish_switch_fiber(caller_fake_, nullptr, nullptr);
#endif
#if defined(SEMEL_FIBRE_TSAN)
    // The last time only here: the fibre's functions still return, and must do so on its account.
    if (ends_) __tsan_switch_to_fiber(tsan_caller_, 0);
#endif
    return has_returned_;
  }
  void to_caller() {
#if defined(SEMEL_FIBRE_TSAN)
    __tsan_switch_to_fiber(tsan_caller_, 0);
#endif
#if defined(SEMEL_FIBRE_ASAN)
    __sanitizer_start_switch_fiber(&own_fake_, caller_bottom_, caller_size_);
#endif
    caller_ = std::move(caller_).resume();
    arrived(own_fake_);
  }

 private:
  void begin() {
    using boost::context::fiber;
    boost::context::protected_fixedsize_stack allocator{stack_bytes};
    const boost::context::stack_context stack = allocator.allocate();
    has_begun_ = true;
    stack_bottom_ = static_cast<char*>(stack.sp) - stack.size;
    stack_size_ = stack.size;
    const boost::context::preallocated whole{stack.sp, stack.size, stack};
    fibre_ = fiber{std::allocator_arg, whole, allocator, [this](fiber&& caller) {
                     arrived(own_fake_);
                     caller_ = std::move(caller);
                     while (!ends_) {
                       work_(argument_);
                       has_returned_ = true;
                       to_caller();
                     }
                     leave_last();
                     return std::move(caller_);
                   }};
#if defined(SEMEL_FIBRE_TSAN)
    tsan_fibre_ = __tsan_create_fiber(0);
#endif
  }
  void arrived([[maybe_unused]] void* fake) {
#if defined(SEMEL_FIBRE_ASAN)
    __sanitizer_finish_switch_fiber(fake, &caller_bottom_, &caller_size_);
#endif
  }
  void leave_last() {
#if defined(SEMEL_FIBRE_ASAN)
    __sanitizer_start_switch_fiber(nullptr, caller_bottom_, caller_size_);
#endif
  }

  boost::context::fiber fibre_;
  boost::context::fiber caller_;
  Work work_ = nullptr;
  void* argument_ = nullptr;
  bool has_begun_ = false;
  bool has_returned_ = false;
  bool ends_ = false;
  [[maybe_unused]] void* stack_bottom_ = nullptr;
  [[maybe_unused]] std::size_t stack_size_ = 0;
  [[maybe_unused]] void* own_fake_ = nullptr;
#if defined(SEMEL_FIBRE_ASAN)
  void* caller_fake_ = nullptr;
  const void* caller_bottom_ = nullptr;
  std::size_t caller_size_ = 0;
#endif
#if defined(SEMEL_FIBRE_TSAN)
  void* tsan_fibre_ = nullptr;
  void* tsan_caller_ = nullptr;
#endif
};

Fibre::Fibre() : impl_(std::make_unique<Impl>()) {}
Fibre::~Fibre() = default;

bool Fibre::run(Work work, void* argument) {
  return impl_->run(work, argument);
}
bool Fibre::resume() {
  return impl_->to_fibre();
}
void Fibre::yield() {
  impl_->to_caller();
}

}  // namespace semel::net

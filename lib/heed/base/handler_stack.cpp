#include "heed/base/handler_stack.h"

#include <csignal>
#include <cstddef>
#include <memory>

namespace heed {
namespace {

class HandlerStack {
 public:
  HandlerStack() {
    stack_t present{};
    if (::sigaltstack(nullptr, &present) == 0 && !(present.ss_flags & SS_DISABLE)) return;
    const auto size = static_cast<std::size_t>(SIGSTKSZ);
    memory_ = std::make_unique<char[]>(size);
    stack_t stack{};
    stack.ss_sp = memory_.get();
    stack.ss_size = size;
    ::sigaltstack(&stack, nullptr);
  }
  ~HandlerStack() {
    if (!memory_) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
  }
  HandlerStack(const HandlerStack&) = delete;
  HandlerStack& operator=(const HandlerStack&) = delete;

 private:
  std::unique_ptr<char[]> memory_;
};

}  // namespace

void use_handler_stack() {
  thread_local const HandlerStack stack;
  static_cast<void>(stack);
}

}  // namespace heed

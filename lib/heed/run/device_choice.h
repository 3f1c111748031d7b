#pragma once

#include <optional>
#include <string>

namespace heed {

/// Returns the number of the GPU on which a program is to compute, or nothing where it is to compute on the CPU.
/// `device` is the value of the option --device: `auto` takes GPU 0 where there is one that heed can use, `cpu` none,
/// and `cuda:N` GPU number N. Throws UsageError where it is none of these, and Error where a GPU is asked for and this
/// heed or this machine has none.
std::optional<int> chosen_gpu(const std::string& device);
/// Returns the number of the GPU on which one of several ranks is to compute: several ranks compute on CPUs, and
/// UsageError is thrown where the user asks for something else. `verb` says what they do, such as "train".
std::optional<int> chosen_gpu(const std::string& device, int ranks, const std::string& verb);

}  // namespace heed

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heed/base/log.h"
#include "heed/dist/communicator.h"

namespace heed {

/// Returns the number of the GPU on which a program is to compute, or nothing where it is to compute on the CPU.
/// `device` is the value of the option --device: `auto` takes the first GPU that heed can use, if there is one, and
/// warns where heed can use none of the GPUs that there are; `cpu` takes none, and `cuda:N` takes GPU number N. Throws
/// UsageError where it is none of these, and Error where a GPU is asked for and this heed or this machine has none.
std::optional<int> chosen_gpu(const std::string& device, Log& log);
/// Returns the number of the GPU on which this rank is to compute, one of several. Collective. `auto` takes a GPU for
/// each rank, in the order of the ranks of a machine, where there are any that heed can use; `cuda:N` takes the same
/// GPU for all ranks of a machine. Throws Error, too, where `auto` has a GPU for some ranks only, or one for two ranks.
std::optional<int> chosen_gpu(const std::string& device, Communicator& ranks, Log& log);

/// Throws Error where some ranks have no GPU, or two have the same. `hosts` are the names of the ranks' machines, and
/// `ids` those of their GPUs among all GPUs, empty where a rank has none.
void check_gpus_of_ranks(const std::vector<std::string>& hosts, const std::vector<std::string>& ids);

/// Returns the kind of the processor that computes: the name of the GPU, or else the instruction set of the CPU.
std::string processor_name(std::optional<int> gpu);

}  // namespace heed

#pragma once

#include "heed/autograd/parameters.h"
#include "heed/tensor/device.h"

namespace heed {

/// A copy of the flat array of a ParameterValues object in the memory of a device.
template <class T>
class DeviceParameters {
 public:
  /// Copies all elements of `values`, which must outlive the object.
  DeviceParameters(Device device, ParameterValues<T>& values)
      : values_(values), device_(device), arena_(device.arena().source()), copy_(arena_.tensor<T>(host().shape())) {
    put();
  }

  /// Returns the copy, for a graph on the device.
  ParameterView<T> view() const { return {values_.layout(), copy_.data()}; }
  /// Copies all elements to the device.
  void put() const { device_.put(host(), copy_); }
  /// Copies all elements back from the device.
  void get() const { device_.get(copy_, host()); }

 private:
  Tensor<T> host() const { return ParameterView<T>(values_).flat(); }

  ParameterValues<T>& values_;
  Device device_;
  Arena arena_;
  Tensor<T> copy_;
};

}  // namespace heed

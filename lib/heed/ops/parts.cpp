#include "heed/ops/parts.h"

#include "heed/ops/check.h"

namespace heed {
namespace {

/// The part of a matrix that belongs to an input of stack_rows() or concatenate(): the input's gradient and where the
/// part begins, in rows or in columns.
template <class T>
struct Part {
  Gradient<T> gradient;
  std::int64_t begin, count;
};

/// Returns an array of `count` parts in the memory of the host, where it stays until the backward pass has ended.
template <class T>
Part<T>* new_parts(Graph<T>& graph, std::size_t count) {
  static_assert(std::is_trivially_destructible_v<Part<T>>);
  return static_cast<Part<T>*>(graph.host_arena().allocate(count * sizeof(Part<T>)));
}

void check_not_empty(const char* op, std::size_t parts) {
  if (parts == 0) throw Error(std::string("internal: ") + op + ": no parts");
}

void check_range(const char* op, std::int64_t begin, std::int64_t count, std::int64_t rows) {
  if (begin < 0 || count < 0 || begin + count > rows)
    throw Error(std::string("internal: ") + op + ": rows " + std::to_string(begin) + " to " +
                std::to_string(begin + count) + " of a matrix with " + std::to_string(rows) + " rows");
}

}  // namespace

template <class T>
Variable<T> row_block(Graph<T>& graph, const Variable<T>& x, std::int64_t begin, std::int64_t count) {
  check_range("row_block", begin, count, x.value.rows());
  const Variable<T> y = graph.result_in(x.value.row_block(begin, count));
  graph.record([x, y, begin, count](auto& device) {
    if (!x.tracked()) return;
    const std::int64_t columns = y.shape()[1];
    add_block<T>(device, y.gradient.sum().data(), columns, x.gradient.sum().row(begin), columns, count, columns);
  });
  return y;
}

template <class T>
Variable<T> stack_rows(Graph<T>& graph, std::span<const Variable<T>> parts) {
  check_not_empty("stack_rows", parts.size());
  const std::int64_t columns = parts[0].value.columns();
  std::int64_t rows = 0;
  Part<T>* const list = new_parts(graph, parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    check_shape("stack_rows", "part", parts[i].shape(), {parts[i].value.rows(), columns});
    new (list + i) Part<T>{parts[i].gradient, rows, parts[i].value.rows()};
    rows += parts[i].value.rows();
  }
  const Variable<T> y = graph.result({rows, columns});
  graph.run([&](auto& device) {
    for (std::size_t i = 0; i < parts.size(); ++i)
      copy_block<T>(device, parts[i].value.data(), columns, y.value.row(list[i].begin), columns, list[i].count,
                    columns);
  });
  graph.record([list, size = parts.size(), y, columns](auto& device) {
    const Tensor<T> dy = y.gradient.sum();
    for (const Part<T>& part : std::span(list, size))
      if (part.gradient)
        add_block<T>(device, dy.row(part.begin), columns, part.gradient.sum().data(), columns, part.count, columns);
  });
  return y;
}

template <class T>
Variable<T> gather_rows(Graph<T>& graph, const Variable<T>& x, std::span<const std::int32_t> rows,
                        std::int64_t beside) {
  const std::int64_t columns = x.value.columns(), count = std::ssize(rows);
  if (beside < 1 || count % beside != 0)
    throw Error("internal: gather_rows: " + std::to_string(count) + " rows, " + std::to_string(beside) +
                " side by side");
  const Variable<T> y = graph.result({count / beside, beside * columns});
  for (const std::int32_t row : rows) check_range("gather_rows", row, 1, x.value.rows());
  graph.run([&](auto& device) { gather_rows_forward(device, x.value, rows, y.value); });
  graph.record([x, rows, y](auto& device) {
    if (x.tracked()) gather_rows_backward(device, y.gradient.sum(), rows, x.gradient.sum());
  });
  return y;
}

template <class T>
Variable<T> concatenate(Graph<T>& graph, std::span<const Variable<T>> parts) {
  check_not_empty("concatenate", parts.size());
  const std::int64_t rows = parts[0].value.rows();
  std::int64_t columns = 0;
  Part<T>* const list = new_parts(graph, parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    check_shape("concatenate", "part", parts[i].shape(), {rows, parts[i].value.columns()});
    new (list + i) Part<T>{parts[i].gradient, columns, parts[i].value.columns()};
    columns += parts[i].value.columns();
  }
  const Variable<T> y = graph.result({rows, columns});
  graph.run([&](auto& device) {
    for (std::size_t i = 0; i < parts.size(); ++i)
      copy_block<T>(device, parts[i].value.data(), list[i].count, y.value.data() + list[i].begin, columns, rows,
                    list[i].count);
  });
  graph.record([list, size = parts.size(), y, rows, columns](auto& device) {
    const T* const dy = y.gradient.sum().data();
    for (const Part<T>& part : std::span(list, size))
      if (part.gradient)
        add_block<T>(device, dy + part.begin, columns, part.gradient.sum().data(), part.count, rows, part.count);
  });
  return y;
}

#define HEED_INSTANTIATE(T)                                                                                     \
  template Variable<T> row_block(Graph<T>&, const Variable<T>&, std::int64_t, std::int64_t);                    \
  template Variable<T> stack_rows(Graph<T>&, std::span<const Variable<T>>);                                     \
  template Variable<T> gather_rows(Graph<T>&, const Variable<T>&, std::span<const std::int32_t>, std::int64_t); \
  template Variable<T> concatenate(Graph<T>&, std::span<const Variable<T>>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed

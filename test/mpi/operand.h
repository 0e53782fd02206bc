// An operand of a collective in memory of some kind: parts of it, what they hold before the call and what after it. All
// other bytes, between and around the parts, must stay as they are.
#pragma once
#include <functional>
#include <memory>

#include "device.h"
#include "layouts.h"

namespace device {

using Value = std::function<int(size_t index)>;  // of the integers of a part

class Operand {
 public:
  // MPI gets no address that means anything: what it must not look at.
  Operand() = default;
  explicit Operand(const layouts::Layout& layout) : layout_(&layout) {}

  // `triples` of integers at a displacement from the buffer's address, in extents of the layout's type. An empty
  // function stands for what the call must leave alone.
  void add(ptrdiff_t displacement, size_t triples, Value before, Value after) {
    add_at(displacement * layout_->extent, triples, std::move(before), std::move(after));
  }
  void add_at(ptrdiff_t bytes, size_t triples, Value before, Value after) {
    const size_t elements = layout_->elements(triples);
    parts_.push_back({bytes, elements, std::move(before), std::move(after)});
    if (elements == 0) return;
    for (const int offset : layout_->offsets)
      for (const ptrdiff_t at : {bytes, bytes + ptrdiff_t(elements - 1) * layout_->extent}) {
        low_ = std::min(low_, at + offset);
        high_ = std::max(high_, at + offset + ptrdiff_t(sizeof(int)));
      }
  }
  void make(Kind kind, check::Random& random) {
    if (!layout_) return;
    buffer_ = std::make_unique<Buffer>(kind, size_t(high_ - low_), random);
  }
  void* address() const { return buffer_ ? (unsigned char*)buffer_->address() - low_ : (void*)0xdead0000dead0000; }
  void put() {
    if (!buffer_) return;
    write(&Part::before);
    buffer_->put();
  }
  void check_after(const char* what, const char* which) {
    if (!buffer_) return;
    write(&Part::after);
    const long at = buffer_->wrong();
    check::expect(at == Buffer::none, "%s: byte %ld from the address of the %s buffer, %s in %s memory, is wrong", what,
                  at == Buffer::none ? 0 : at + (long)low_, which, layout_->what, name(buffer_->kind()));
  }

 private:
  struct Part {
    ptrdiff_t at;
    size_t elements;
    Value before, after;
  };

  void write(Value Part::*when) {
    const size_t units = layout_->offsets.size();
    for (const Part& part : parts_) {
      if (!(part.*when)) continue;
      for (size_t i = 0; i < part.elements; ++i)
        for (size_t u = 0; u < units; ++u) {
          const int value = (part.*when)(i * units + u);
          memcpy(buffer_->image() - low_ + part.at + ptrdiff_t(i) * layout_->extent + layout_->offsets[u], &value,
                 sizeof value);
        }
    }
  }

  const layouts::Layout* layout_ = nullptr;
  std::vector<Part> parts_;
  ptrdiff_t low_ = 0, high_ = 0;
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace device

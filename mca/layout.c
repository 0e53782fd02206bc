/* The bytes that elements of a datatype touch, as few rows as can be.
 *
 * Gaps are left out: what lies there may be anybody's, and keeps its value. Rows of one width and pitch are one piece,
 * so that a column of a matrix is one copy. */
#include <stdlib.h>

#include "mca/gpurdma_mca.h"

enum { kMostPitch = 1 << 30 }; /* copies on a GPU have no more than 2 GiB */

static gpurdma_piece_t *push(gpurdma_layout_t *layout) {
  if (layout->count == layout->capacity) {
    const size_t capacity = 0 == layout->capacity ? 8 : 2 * layout->capacity;
    gpurdma_piece_t *pieces = realloc(layout->pieces, capacity * sizeof *pieces);
    if (NULL == pieces) return NULL;
    layout->pieces = pieces;
    layout->capacity = capacity;
  }
  return layout->pieces + layout->count++;
}

/* Makes the row a part of the last piece, where it is next to it or goes on in its steps. */
static bool join(gpurdma_layout_t *layout, ptrdiff_t offset, size_t width) {
  if (0 == layout->count) return false;
  gpurdma_piece_t *last = layout->pieces + layout->count - 1;
  if (1 == last->rows && last->offset + (ptrdiff_t)last->width == offset) {
    last->width += width;
    return true;
  }
  if (last->width != width) return false;
  const ptrdiff_t step = offset - last->offset - (ptrdiff_t)(last->rows - 1) * last->pitch;
  if (1 == last->rows ? step < (ptrdiff_t)width || step > kMostPitch : step != last->pitch) return false;
  last->pitch = step;
  ++last->rows;
  return true;
}

static bool add_row(gpurdma_layout_t *layout, ptrdiff_t offset, size_t width) {
  if (join(layout, offset, width)) return true;
  gpurdma_piece_t *piece = push(layout);
  if (NULL == piece) return false;
  *piece = (gpurdma_piece_t){offset, width, 1, 0};
  return true;
}

/* rows > 0. A pitch that is less than the width, as of elements that overlap, or are laid out backwards, is none that a
 * copy of rows can have. */
static bool add_rows(gpurdma_layout_t *layout, ptrdiff_t offset, size_t width, size_t rows, ptrdiff_t pitch) {
  if (rows > 1 && pitch > (ptrdiff_t)width && pitch <= kMostPitch) {
    gpurdma_piece_t *piece = push(layout);
    if (NULL == piece) return false;
    *piece = (gpurdma_piece_t){offset, width, rows, pitch};
    return true;
  }
  for (size_t row = 0; row < rows; ++row)
    if (!add_row(layout, offset + (ptrdiff_t)row * pitch, width)) return false;
  return true;
}

/* The runs of one element, in the order in which the datatype names them. */
static bool add_element(gpurdma_layout_t *layout, const ompi_datatype_t *type) {
  enum { kRuns = 64 };
  static char origin; /* never touched: the convertor only reckons with its address */
  opal_convertor_t convertor;
  bool good = true;
  OBJ_CONSTRUCT(&convertor, opal_convertor_t);
  if (OPAL_SUCCESS !=
      opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, 1, &origin, 0, &convertor))
    good = false;
  for (int more = 1; more && good;) {
    struct iovec runs[kRuns];
    uint32_t count = kRuns;
    size_t bytes = 0;
    more = 0 == opal_convertor_raw(&convertor, runs, &count, &bytes);
    for (uint32_t run = 0; run < count && good; ++run)
      if (0 != runs[run].iov_len)
        good = add_row(layout, (ptrdiff_t)((uintptr_t)runs[run].iov_base - (uintptr_t)&origin), runs[run].iov_len);
  }
  OBJ_DESTRUCT(&convertor);
  return good;
}

/* Element by element, or row by row of all elements, whichever gives fewer pieces. */
static bool add_elements(gpurdma_layout_t *layout, const gpurdma_layout_t *element, ptrdiff_t offset, size_t count,
                         ptrdiff_t extent) {
  size_t rows = 0;
  for (size_t index = 0; index < element->count; ++index) rows += element->pieces[index].rows;
  if (count > 1 && rows <= element->count * count) {
    for (size_t index = 0; index < element->count; ++index) {
      const gpurdma_piece_t *piece = element->pieces + index;
      for (size_t row = 0; row < piece->rows; ++row)
        if (!add_rows(layout, offset + piece->offset + (ptrdiff_t)row * piece->pitch, piece->width, count, extent))
          return false;
    }
    return true;
  }
  for (size_t at = 0; at < count; ++at, offset += extent)
    for (size_t index = 0; index < element->count; ++index) {
      const gpurdma_piece_t *piece = element->pieces + index;
      if (!add_rows(layout, offset + piece->offset, piece->width, piece->rows, piece->pitch)) return false;
    }
  return true;
}

bool gpurdma_mca_layout_add(gpurdma_layout_t *layout, ptrdiff_t offset, size_t count, const ompi_datatype_t *type) {
  const opal_datatype_t *of = &type->super;
  if (0 == count || 0 == of->size) return true;
  const ptrdiff_t extent = of->ub - of->lb;
  if (of->flags & OPAL_DATATYPE_FLAG_CONTIGUOUS) {
    if (extent == (ptrdiff_t)of->size) return add_row(layout, offset + of->true_lb, of->size * count);
    return add_rows(layout, offset + of->true_lb, of->size, count, extent);
  }
  gpurdma_layout_t element = {0};
  const bool good = add_element(&element, type) && add_elements(layout, &element, offset, count, extent);
  gpurdma_mca_layout_free(&element);
  return good;
}

void gpurdma_mca_layout_free(gpurdma_layout_t *layout) {
  free(layout->pieces);
  *layout = (gpurdma_layout_t){0};
}

gpurdma_span_t gpurdma_mca_layout_span(const gpurdma_layout_t *layout) {
  gpurdma_span_t span = {PTRDIFF_MAX, PTRDIFF_MIN};
  for (size_t index = 0; index < layout->count; ++index) {
    const gpurdma_piece_t *piece = layout->pieces + index;
    const ptrdiff_t end = piece->offset + (ptrdiff_t)(piece->rows - 1) * piece->pitch + (ptrdiff_t)piece->width;
    if (piece->offset < span.low) span.low = piece->offset;
    if (end > span.high) span.high = end;
  }
  return span;
}

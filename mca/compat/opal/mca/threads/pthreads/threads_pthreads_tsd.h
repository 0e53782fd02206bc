/* Stands in for a header that Open MPI's development packages leave out and opal/mca/threads/tsd.h includes by macro
 * (5.0 and later). */
#ifndef GPURDMA_COMPAT_THREADS_PTHREADS_TSD_H
#define GPURDMA_COMPAT_THREADS_PTHREADS_TSD_H

#include <pthread.h>

#include "opal/constants.h"

typedef pthread_key_t opal_tsd_key_t;

static inline int opal_tsd_key_delete(opal_tsd_key_t key) {
  return pthread_key_delete(key) ? OPAL_ERR_IN_ERRNO : OPAL_SUCCESS;
}

static inline int opal_tsd_set(opal_tsd_key_t key, void *value) {
  return pthread_setspecific(key, value) ? OPAL_ERR_IN_ERRNO : OPAL_SUCCESS;
}

static inline int opal_tsd_get(opal_tsd_key_t key, void **value) {
  *value = pthread_getspecific(key);
  return OPAL_SUCCESS;
}

#endif

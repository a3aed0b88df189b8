/* The places of all handles, and the view. */
#include "handles.h"

struct nvmlDevice_st sn_handles[SN_MAX_DEVICES][SN_EPOCHS];
struct nvmlDevice_st sn_mig_handles[SN_MAX_DEVICES][SN_MAX_MIG_DEVICES][SN_EPOCHS];
struct sn_view sn_view;

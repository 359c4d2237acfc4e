TOP              = $(_HERE_)/..

CICC_PATH        = $(TOP)/nvvm/bin

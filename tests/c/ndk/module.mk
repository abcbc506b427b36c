$(foreach file,$(LOCAL_SRC_FILES),$(if $(wildcard $(LOCAL_PATH)/$(file)),,$(error $(LOCAL_MODULE): no $(file))))
$(info $(LOCAL_MODULE): $(LOCAL_SRC_FILES) | $(LOCAL_CFLAGS) | $(LOCAL_STATIC_LIBRARIES) | $(LOCAL_EXPORT_CFLAGS) | \
  $(patsubst %,-I%,$(LOCAL_EXPORT_C_INCLUDES)) | $(LOCAL_EXPORT_LDFLAGS) $(LOCAL_EXPORT_LDLIBS))

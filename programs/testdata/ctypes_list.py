# Finds libibverbs by ctypes, which asks dlsym for each function.
import ctypes
v = ctypes.CDLL("libibverbs.so.1", use_errno=True)
v.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
v.ibv_get_device_name.restype = ctypes.c_char_p
v.ibv_get_device_name.argtypes = [ctypes.c_void_p]
n = ctypes.c_int(-1)
l = v.ibv_get_device_list(ctypes.byref(n))
print("devices:", n.value, [v.ibv_get_device_name(l[i]).decode() for i in range(n.value)] if l else "NULL, errno %d" % ctypes.get_errno())

/* What Linux has of devices in the file system. */
#define IW_SYS_CLASS "/sys/class/infiniband"
#define IW_SYS_DEVICE IW_SYS_CLASS "/iwarp0"
#define IW_SYS_REAL "/sys/devices/virtual/infiniband/iwarp0" /* where a device without hardware is */

const char *iw_sys_path(const char *path); /* what follows the device's directory, or NULL */
int iw_sys_file(const char *path, char *text, size_t size); /* the length of what is in a file, or 0 */
bool iw_sys_directory(const char *path);

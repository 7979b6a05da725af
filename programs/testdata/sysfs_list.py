"""Lists what sysfs has of RDMA devices, as Valkey's own test does to find one."""
import os

for at, directories, files in os.walk("/sys/class/infiniband"):
    print(at, directories, files)
    for name in files:
        with open(os.path.join(at, name)) as file:
            print(name, file.read().strip())

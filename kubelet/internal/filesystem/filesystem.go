package filesystem

import "golang.org/x/sys/unix"

// Space is how large a file system is, in bytes and inodes, and how full.
type Space struct {
	Capacity uint64
	Used     uint64
	// Available is for everybody. Some file systems keep a reserve for root, which is
	// neither available nor used.
	Available  uint64
	Inodes     uint64 // 0 for those that have no limit
	InodesFree uint64
}

// InodesUsed is how many inodes are not free.
func (s Space) InodesUsed() uint64 { return s.Inodes - s.InodesFree }

// Of is the space of the file system that path is on. The error is the kernel's, and
// does not name the path.
func Of(path string) (Space, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return Space{}, err
	}
	block := uint64(fs.Bsize)
	return Space{
		Capacity: fs.Blocks * block, Used: (fs.Blocks - fs.Bfree) * block, Available: fs.Bavail * block,
		Inodes: fs.Files, InodesFree: fs.Ffree,
	}, nil
}

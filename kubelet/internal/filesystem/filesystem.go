package filesystem

import "golang.org/x/sys/unix"

// Space is the size of a file system and how full it is, in bytes and inodes.
type Space struct {
	Capacity uint64
	Used     uint64
	// Available is for all users. Some file systems reserve space for root, which
	// is neither available nor used.
	Available  uint64
	Inodes     uint64 // 0 if there is no limit
	InodesFree uint64
}

// InodesUsed returns the number of inodes that are not free.
func (s Space) InodesUsed() uint64 { return s.Inodes - s.InodesFree }

// Of returns the space of the file system that holds path. The error is the
// kernel's, and does not name the path.
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

package etcd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"golang.org/x/sys/unix"
)

// damaged is what to do about data that can no longer be read.
func damaged(dir string, cause error) error {
	return fmt.Errorf("the data in %s is damaged: %w; restore the last backup (docs/operations.md), or move the "+
		"directory away to begin with nothing", dir, cause)
}

// checkFiles finds faults for which etcd would crash the process with a stack
// trace and no advice: a file that is not a database or is truncated, or one
// that another process has open.
func checkFiles(dir string) error {
	path := filepath.Join(dir, "member", "snap", "db")
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("embedded etcd: %w", err)
	}
	if info.Size() == 0 {
		return checkEmpty(dir)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: 3 * time.Second})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("the data in %s is in use: another API server runs on it", dir)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("embedded etcd: %w", err)
	case err != nil:
		return damaged(dir, err)
	}
	defer db.Close()
	return db.View(func(tx *bbolt.Tx) error {
		if whole := tx.Size(); whole > info.Size() {
			return damaged(dir, fmt.Errorf("%s has %d bytes of %d", path, info.Size(), whole))
		}
		return nil
	})
}

// checkEmpty finds an empty database, which is left by a first start that was
// cut short, unless there is a log with it.
func checkEmpty(dir string) error {
	logs, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err == nil && len(logs) > 0 {
		return damaged(dir, errors.New("the database is empty, and its log is not"))
	}
	return err
}

// startError is an error of etcd's start, with advice if there is any.
func startError(dir string, err error) error {
	for _, part := range []string{"walpb: ", "wal: ", "snap: "} { // the packages of its files
		if strings.Contains(err.Error(), part) {
			return damaged(dir, err)
		}
	}
	var disk unix.Statfs_t
	if unix.Statfs(dir, &disk) == nil && int64(disk.Bavail)*disk.Bsize < wal.SegmentSizeBytes {
		return fmt.Errorf("start embedded etcd on %s: %w (%d MB are free there, but a log file needs %d: free some space)",
			dir, err, int64(disk.Bavail)*disk.Bsize/1e6, wal.SegmentSizeBytes/1e6)
	}
	return fmt.Errorf("start embedded etcd on %s: %w", dir, err)
}

package hostpath

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/filesystem"
	"kctl/kubelet/internal/filesystem/filesystemtest"
)

func TestSetUpChecksTypes(t *testing.T) {
	dir := t.TempDir()
	file, socket := filepath.Join(dir, "file"), filepath.Join(dir, "socket")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	none := filepath.Join(dir, "none")
	for _, c := range []struct {
		kind corev1.HostPathType
		path string
		ok   bool
	}{
		{"", none, true},
		{corev1.HostPathDirectory, dir, true}, {corev1.HostPathDirectory, file, false}, {corev1.HostPathDirectory, none, false},
		{corev1.HostPathFile, file, true}, {corev1.HostPathFile, dir, false}, {corev1.HostPathFile, none, false},
		{corev1.HostPathSocket, socket, true}, {corev1.HostPathSocket, file, false},
		{corev1.HostPathCharDev, "/dev/null", true}, {corev1.HostPathCharDev, file, false},
		{corev1.HostPathBlockDev, "/dev/null", false},
		{corev1.HostPathDirectoryOrCreate, dir, true}, {corev1.HostPathDirectoryOrCreate, file, false},
		{corev1.HostPathFileOrCreate, file, true}, {corev1.HostPathFileOrCreate, dir, false},
		{corev1.HostPathFileOrCreate, filepath.Join(none, "below"), false},
		{"Pipe", file, false},
	} {
		if err := SetUp(&corev1.HostPathVolumeSource{Path: c.path, Type: &c.kind}); (err == nil) != c.ok {
			t.Errorf("%s %s: %v", c.kind, c.path, err)
		}
	}
	kind := corev1.HostPathFileOrCreate
	if err := SetUp(&corev1.HostPathVolumeSource{Path: none, Type: &kind}); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(none); err != nil || !info.Mode().IsRegular() {
		t.Errorf("FileOrCreate made %v, %v", info, err)
	}
	kind = corev1.HostPathDirectoryOrCreate
	made := filepath.Join(dir, "a", "b")
	if err := SetUp(&corev1.HostPathVolumeSource{Path: made, Type: &kind}); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(made); err != nil || !info.IsDir() {
		t.Errorf("DirectoryOrCreate made %v, %v", info, err)
	}
	if err := SetUp(&corev1.HostPathVolumeSource{Path: none}); err != nil {
		t.Errorf("no type: %v", err)
	}
}

func TestWhatAPathIsInsteadIsTold(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		kind corev1.HostPathType
		want string
	}{
		{dir + "/no", corev1.HostPathDirectory, `hostPath type check failed, ` + dir + `/no is not a directory, unable to determine its type: path "` + dir +
			`/no" does not exist`},
		{file, corev1.HostPathDirectory, `hostPath type check failed: ` + file + ` is not a directory, it's a File`},
		{file, corev1.HostPathDirectoryOrCreate, `hostPath type check failed: ` + file + ` is not a directory, it's a File`},
		{dir, corev1.HostPathFileOrCreate, `hostPath type check failed: ` + dir + ` is not a file, it's a Directory`},
		{"/dev/null", corev1.HostPathBlockDev, `hostPath type check failed: /dev/null is not a block device, it's a CharDevice`},
	} {
		if err := SetUp(&corev1.HostPathVolumeSource{Path: c.path, Type: &c.kind}); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.kind, err, c.want)
		}
	}
}

// The pod says why it does not start, and can be deleted.
func TestAPathWhoseFileSystemIsSilent(t *testing.T) {
	dir := t.TempDir()
	filesystemtest.MountSilent(t, dir)
	for _, kind := range []corev1.HostPathType{corev1.HostPathDirectory, corev1.HostPathDirectoryOrCreate, corev1.HostPathFileOrCreate, corev1.HostPathSocket} {
		if err := SetUp(&corev1.HostPathVolumeSource{Path: filepath.Join(dir, "path"), Type: &kind}); !errors.Is(err, filesystem.ErrSilent) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// adviceFor says what to do about a machine error that ended the program; "" where
// the error says enough by itself.
func adviceFor(err error) string {
	var path *fs.PathError
	var verification *tls.CertificateVerificationError
	file := errors.As(err, &path)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "another program uses that port: find it with `ss -ltnp` and stop it, or choose another port"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine does not have that address: `ip address` lists its addresses"
	case errors.Is(err, syscall.ENOSPC):
		return "the disk is full: `df -h` shows which; free some space"
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only: choose a directory that this program can write to"
	case errors.Is(err, fs.ErrPermission) && file:
		return fmt.Sprintf("this program runs as %s: `namei -l %s` shows which permission is missing", currentUser(), path.Path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("this program runs as %s, which lacks the permission", currentUser())
	case errors.Is(err, fs.ErrNotExist) && file && isJoined(path.Path):
		return "`kctl join` creates it when this machine becomes a node; otherwise check the file name"
	case errors.Is(err, fs.ErrNotExist) && file && isPKI(path.Path):
		return "`kctl pki init` creates missing files; otherwise check the file name"
	case isEmptyFile(err):
		return "`kctl pki check` shows which file is empty or damaged; restore it from a copy, or create missing files with `kctl pki init`"
	case errors.As(err, &verification), strings.Contains(err.Error(), "private key does not match public key"):
		return "`kctl pki check` shows which certificates don't match or have expired"
	}
	return ""
}

// isJoined tells whether a file is one of those that `kctl join` writes.
func isJoined(path string) bool {
	switch filepath.Base(path) {
	case "kubelet.kubeconfig", "bootstrap-kubelet.kubeconfig", "kubelet.yaml":
		return true
	}
	return false
}

// isEmptyFile tells whether a file held no certificate, key or kubeconfig. Such
// files are left by a crash, and made by systemd in place of a unit's missing
// credential.
func isEmptyFile(err error) bool {
	says := []string{"failed to find any PEM data", "no PEM certificate in it", "no current-context"}
	return slices.ContainsFunc(says, func(s string) bool { return strings.Contains(err.Error(), s) })
}

// isPKI tells whether a file is one of those that `kctl pki` looks after.
func isPKI(path string) bool {
	return slices.Contains([]string{".crt", ".key", ".pub", ".kubeconfig"}, filepath.Ext(path))
}

// currentUser is the user that the program runs as.
func currentUser() string {
	id := os.Geteuid()
	if u, err := user.LookupId(fmt.Sprint(id)); err == nil {
		return fmt.Sprintf("%s (uid %d)", u.Username, id)
	}
	return fmt.Sprintf("uid %d", id)
}

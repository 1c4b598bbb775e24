package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// openVolume opens a volume's directory. A path of the host may be a pipe, whose opening for
// reading would hold us for ever.
func openVolume(volume string) (*os.File, error) {
	base, err := os.OpenFile(volume, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the volume: %w", err)
	}
	return base, nil
}

// openBeneath opens a path of the volume without reading it, so that sockets
// and devices can be bound too.
func openBeneath(volume, subPath string) (*os.File, error) {
	base, err := openVolume(volume)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	return openIn(base, subPath, 0)
}

func openIn(base *os.File, subPath string, flags uint64) (*os.File, error) {
	how := &unix.OpenHow{Flags: flags | unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	// The kernel asks to try again if something was renamed meanwhile; renaming
	// that never stops is an attempt to break out.
	const attempts = 16
	for range attempts {
		fd, err := unix.Openat2(int(base.Fd()), subPath, how)
		if err == nil {
			return os.NewFile(uintptr(fd), filepath.Join(base.Name(), subPath)), nil
		}
		switch {
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EXDEV):
			return nil, outside(subPath)
		case errors.Is(err, unix.ENOSYS):
			return nil, errors.New("subPath needs openat2, Linux 5.6 or newer")
		}
		return nil, fmt.Errorf("opening %q: %w", subPath, err)
	}
	return nil, fmt.Errorf("opening %q: it keeps changing", subPath)
}

// errOutside is of a path to something that is not in its volume.
var errOutside = errors.New("leads out of the volume")

func outside(subPath string) error { return fmt.Errorf("%q %w", subPath, errOutside) }

// mostLinks is how many links the kernel follows in a path.
const mostLinks = 40

// followed is subPath with its links followed, as far as it exists. The kernel lets no absolute link be taken
// beneath a directory, but such a link may stay in the volume, as /var/run of a host's / does. Links are read, and
// looked up beneath the volume only: containers make them, and where they lead to on the host may hang whoever looks,
// or be what a container is not to know of. What a container changes meanwhile is no danger: the result is a hint, and
// is opened beneath the volume, too.
func followed(volume, subPath string) (string, error) {
	if !filepath.IsLocal(subPath) {
		return "", outside(subPath)
	}
	resolved, err := filepath.EvalSymlinks(volume)
	if err != nil {
		return "", fmt.Errorf("looking for the volume: %w", err)
	}
	base, err := openVolume(volume)
	if err != nil {
		return "", err
	}
	defer base.Close()
	done, left, links := ".", subPath, 0
	for left != "" {
		var part string
		part, left, _ = strings.Cut(left, "/")
		next := filepath.Join(".", done, part)
		if !filepath.IsLocal(next) {
			return "", outside(subPath)
		}
		if part == "" || part == "." || part == ".." {
			done = next
			continue
		}
		link, err := linkIn(base, next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return filepath.Join(next, left), nil
		case err != nil:
			return "", fmt.Errorf("following the links of %q: %w", subPath, err)
		case link == "":
			done = next
			continue
		}
		if links++; links > mostLinks {
			return "", fmt.Errorf("following the links of %q: %w", subPath, unix.ELOOP)
		}
		if filepath.IsAbs(link) {
			inside, ok := beneath(link, resolved)
			if !ok {
				inside, ok = beneath(link, volume)
			}
			if !ok {
				return "", outside(subPath)
			}
			done, link = ".", inside
		}
		left = link + "/" + left
	}
	return done, nil
}

// beneath is the rest of a path that begins with a directory's.
func beneath(path, directory string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, strings.TrimSuffix(directory, "/"))
	return rest, ok && (rest == "" || rest[0] == '/')
}

// linkIn is where a link of the volume leads to; "" if it is none.
func linkIn(base *os.File, path string) (string, error) {
	file, err := openIn(base, path, unix.O_NOFOLLOW)
	if err != nil {
		return "", err
	}
	defer file.Close()
	var is unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &is); err != nil || is.Mode&unix.S_IFMT != unix.S_IFLNK {
		return "", err
	}
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(file.Fd()), "", target)
	return string(target[:max(n, 0)]), err
}

// Package archive packs files for `kctl cp` and unpacks the tar streams that
// containers send: nothing in them may end up outside the place that the user
// named.
//
// Package command calls it. It reads and writes local files only.
package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Pack writes a file, or a directory with everything in it, under a name.
func Pack(w io.Writer, source, name string) error {
	out := tar.NewWriter(w)
	err := filepath.WalkDir(source, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(source, file)
		if err != nil {
			return err
		}
		return addEntry(out, file, path.Join(name, filepath.ToSlash(below)), entry)
	})
	return errors.Join(err, out.Close())
}

func addEntry(out *tar.Writer, file, name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	link := ""
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if link, err = os.Readlink(file); err != nil {
			return err
		}
	case !info.IsDir() && !info.Mode().IsRegular():
		return nil // devices and sockets mean nothing elsewhere
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	header.Name = name
	if info.IsDir() {
		header.Name += "/"
	}
	if err := out.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	content, err := os.Open(file)
	if err != nil {
		return err
	}
	defer content.Close()
	if _, err := io.Copy(out, content); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// Unpack extracts what is under prefix in the stream to destination, and
// returns the number of files. A directory goes into one that is there, a file that is
// asked for into it under its own name; missing directories are made. Everything is
// opened below destination's root, so that neither names nor links in the stream can
// lead out of it. Symbolic links are skipped, each with a warning, because the container
// decides where they lead. What tar sends as a hard link to an earlier file of the stream
// becomes a copy of that.
func Unpack(r io.Reader, prefix, destination string, warn func(string)) (int, error) {
	in := tar.NewReader(r)
	header, err := in.Next() // before anything is made for what may not come
	to := &place{prefix: memberName(prefix), destination: destination, written: map[uint64]bool{}, seed: maphash.MakeSeed()}
	if err == nil {
		if err := to.open(); err != nil {
			return 0, err
		}
		defer to.root.Close()
	}
	for files := 0; ; header, err = in.Next() {
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return files, fmt.Errorf("reading what the container sent: %w", err)
		}
		target, err := to.of(header)
		if err != nil {
			return files, err
		}
		switch header.Typeflag {
		case tar.TypeDir:
			err = makeAll(to.root, target)
		case tar.TypeReg:
			files++
			err = to.writeFile(target, in, header.FileInfo().Mode().Perm())
		case tar.TypeLink:
			var copied bool
			if copied, err = to.copyLinked(target, header); copied {
				files++
			} else if err == nil {
				warn(fmt.Sprintf("skipping %q: it is a link to %q, which was not copied", header.Name, header.Linkname))
			}
		default:
			warn(fmt.Sprintf("skipping %q: it is no regular file", header.Name))
		}
		if err != nil {
			return files, printableError(err)
		}
	}
}

// place is where Unpack puts what is under a prefix: at a destination, which is name
// below root.
type place struct {
	prefix, destination string
	root                *os.Root
	name                string
	there               bool // as a directory
	// written are hashes of the names of the stream's files: names of a container's choice
	// could fill the memory, and no other file may be what a link leads to.
	written map[uint64]bool
	seed    maphash.Seed
}

// open opens the directory below which the destination is, or, if it is a directory
// itself, that.
func (p *place) open() error {
	destination := p.destination
	base, name := filepath.Split(filepath.Clean(destination))
	if base == "" {
		base = "."
	}
	if info, err := os.Stat(destination); err == nil && info.IsDir() {
		base, name, p.there = destination, ".", true
	}
	if err := os.MkdirAll(base, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(base)
	p.root, p.name = root, name
	return err
}

// memberName is what tar calls a path: everything up to the last ".." is left out, and so
// is what leads to the root. The working directory itself has the name "".
func memberName(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range slices.Backward(parts) {
		if part == ".." {
			parts = parts[i+1:]
			break
		}
	}
	return strings.Trim(path.Clean("/"+path.Join(parts...)), "/")
}

// of is where an entry of the stream belongs. One that was not asked for is an error.
func (p *place) of(header *tar.Header) (string, error) {
	return p.named(header.Name, header.Typeflag == tar.TypeReg)
}

// named is where what tar calls name belongs, a file or something else.
func (p *place) named(name string, isFile bool) (string, error) {
	if len(name) > maxNameLength {
		return "", fmt.Errorf("the container sent a name of %d bytes", len(name))
	}
	below, ok := strings.CutPrefix(memberName(name)+"/", p.prefix+"/")
	if p.prefix != "" && !ok {
		return "", fmt.Errorf("the container sent %q, which was not requested", name)
	}
	below = strings.TrimSuffix(below, "/")
	if below == "" && p.there && isFile {
		below = path.Base(p.prefix)
	}
	return filepath.Join(p.name, filepath.FromSlash(below)), nil
}

// maxNameLength is the longest file name, in bytes, that is accepted from a container
// (Linux' PATH_MAX). Files below a root have no such limit, and a name of a
// megabyte could be half a million nested directories.
const maxNameLength = 4096

// printableError makes an error about a file whose name a container chose fit for a terminal.
func printableError(err error) error {
	if about, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s %q: %w", about.Op, about.Path, about.Err)
	}
	return err
}

func makeAll(root *os.Root, dir string) error {
	if dir == "." || dir == "" {
		return nil
	}
	if err := makeAll(root, filepath.Dir(dir)); err != nil {
		return err
	}
	if err := root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// writeFile writes a file below the root. Only the destination itself may lead out of it,
// because the user named it: a link, or /dev/stdout.
func (p *place) writeFile(name string, content io.Reader, mode fs.FileMode) error {
	const how = os.O_CREATE | os.O_TRUNC | os.O_WRONLY
	open := func() (*os.File, error) { return os.OpenFile(filepath.Clean(p.destination), how, mode) }
	if name != p.name || p.there {
		if err := makeAll(p.root, filepath.Dir(name)); err != nil {
			return err
		}
		open = func() (*os.File, error) { return p.root.OpenFile(name, how, mode) }
	}
	file, err := open()
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	p.written[maphash.String(p.seed, name)] = true
	return errors.Join(err, file.Close())
}

// copyLinked writes what the stream calls another name of one of its earlier files. It does
// nothing if there was none.
func (p *place) copyLinked(name string, header *tar.Header) (copied bool, err error) {
	from, err := p.named(header.Linkname, true)
	if err != nil || from == name || !p.written[maphash.String(p.seed, from)] {
		return false, nil
	}
	content, err := p.root.Open(from)
	if err != nil {
		return false, err
	}
	defer content.Close()
	if p.is(name, content) {
		return true, nil // by a link that is there already: writing would empty what is read
	}
	return true, p.writeFile(name, content, header.FileInfo().Mode().Perm())
}

// is tells whether a name below the root is an open file's, too.
func (p *place) is(name string, file *os.File) bool {
	there, err := p.root.Stat(name)
	if err != nil {
		return false // writing tells why, if it matters
	}
	opened, err := file.Stat()
	return err == nil && os.SameFile(there, opened)
}

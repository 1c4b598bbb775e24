package harness

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Demo is the image that every cluster's registry has.
const Demo = "kctl.local/demo"

// Shell pushes an image with a shell and the usual tools (Debian's static
// busybox) to the cluster's registry, and returns the image's name.
func (c *Cluster) Shell() string {
	c.t.Helper()
	return c.ShellAs("shell", v1.Config{Cmd: []string{"sh"}, Env: []string{"PATH=/bin"}})
}

// Program pushes an image of one static binary and returns the image's name.
func (c *Cluster) Program(name, binary string) string {
	c.t.Helper()
	image, err := programImage(name, binary)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.push(name, image)
}

// Archive writes an image of one static binary as a file that container engines
// load.
func Archive(t testing.TB, image, binary, file string) {
	t.Helper()
	made, err := programImage(filepath.Base(binary), binary)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(image)
	if err == nil {
		err = tarball.WriteToFile(file, tag, made)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func programImage(name, binary string) (v1.Image, error) {
	data, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	err = w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(data))})
	if err == nil {
		_, err = w.Write(data)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return newImage(layer.Bytes(), v1.Config{Entrypoint: []string{"/" + name}})
}

// newImage is an image of one layer.
func newImage(layer []byte, config v1.Config) (v1.Image, error) {
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer)), nil })
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, config
	return mutate.ConfigFile(image, file)
}

// ShellAs pushes Shell's files as an image of that name and configuration.
func (c *Cluster) ShellAs(image string, config v1.Config) string {
	c.t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		c.t.Fatalf("the tests need Debian's busybox-static: %v", err)
	}
	binary, err := os.ReadFile(busybox)
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		c.t.Fatal(err)
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	add := func(h *tar.Header, data []byte) {
		h.Size = int64(len(data))
		if err := w.WriteHeader(h); err != nil {
			c.t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			c.t.Fatal(err)
		}
	}
	add(&tar.Header{Name: "bin/busybox", Mode: 0o755}, binary)
	for applet := range bytes.FieldsSeq(out) {
		if string(applet) == "busybox" {
			continue // the binary itself
		}
		add(&tar.Header{Name: "bin/" + string(applet), Typeflag: tar.TypeSymlink, Linkname: "busybox"}, nil)
	}
	add(&tar.Header{Name: "tmp/", Mode: 0o1777, Typeflag: tar.TypeDir}, nil)
	add(&tar.Header{Name: "etc/passwd", Mode: 0o644}, []byte("root:x:0:0:root:/:/bin/sh\n"))
	if err := w.Close(); err != nil {
		c.t.Fatal(err)
	}
	made, err := newImage(layer.Bytes(), config)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.push(image, made)
}

func (c *Cluster) push(image string, content v1.Image) string {
	c.t.Helper()
	tag, err := name.NewTag(c.Registry()+"/"+image+":latest", name.Insecure)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := remote.Write(tag, content, remote.WithContext(c.t.Context())); err != nil {
		c.t.Fatalf("push %s: %v", image, err)
	}
	return "kctl.local/" + image
}

// Registry is the address of the cluster's image registry.
func (c *Cluster) Registry() string {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join(c.Dir, "cluster.json"))
	if err != nil {
		c.t.Fatal(err)
	}
	var settings struct {
		RegistryPort int `json:"registryPort"`
	}
	if err := json.Unmarshal(data, &settings); err != nil {
		c.t.Fatal(err)
	}
	return "127.0.0.1:" + strconv.Itoa(settings.RegistryPort)
}

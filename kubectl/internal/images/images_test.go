package images

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"kctl/proto/release"
)

// binaries writes a file for each image's binary.
func binaries(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, s := range slices.Concat(Specs, ControlPlane) {
		for _, name := range append([]string{s.Binary}, s.Also...) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("binary "+name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func TestServedImagesCanBePulled(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, address, binaries(t), t.TempDir()) }()
	for Ready(ctx, address) != nil {
		select {
		case err := <-done:
			t.Fatal(err)
		default:
		}
	}
	for _, spec := range Specs {
		ref, err := name.ParseReference(address+"/"+spec.Name, name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		image, err := remote.Image(ref)
		if err != nil {
			t.Fatal(err)
		}
		check(t, image, spec)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("after its context ended: %v", err)
	}
}

func check(t *testing.T, image v1.Image, spec Spec) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || fmt.Sprint(config.Config.Entrypoint) != fmt.Sprint(spec.Entrypoint) || config.Config.User != spec.User {
		t.Errorf("%s: %+v", spec.Name, config.Config)
	}
	want := map[string]bool{}
	for _, name := range slices.Concat([]string{spec.Binary}, spec.Also, spec.Dirs) {
		want[name] = true
	}
	files := tar.NewReader(mutate.Extract(image))
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		header.Name = path.Clean(header.Name)
		switch {
		case slices.Contains(spec.Dirs, header.Name):
			if header.Uid != ownerID || header.Mode&0o777 != 0o700 {
				t.Errorf("%s: %s is of user %d, mode %o", spec.Name, header.Name, header.Uid, header.Mode)
			}
		case want[header.Name]:
			if string(data) != "binary "+header.Name || header.Mode&0o111 == 0 {
				t.Errorf("%s: %s is %q, mode %o", spec.Name, header.Name, data, header.Mode)
			}
		}
		delete(want, header.Name)
	}
	if len(want) > 0 {
		t.Errorf("%s: not in the image: %v", spec.Name, want)
	}
}

func TestSameBinarySameDigest(t *testing.T) {
	dir := binaries(t)
	var digests []v1.Hash
	for range 2 {
		image, err := build(Specs[0], dir)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("%s and %s", digests[0], digests[1])
	}
}

func TestWriteAll(t *testing.T) {
	dir := t.TempDir()
	specs := slices.Concat(Specs, ControlPlane)
	if err := WriteAll(specs, binaries(t), dir); err != nil {
		t.Fatal(err)
	}
	for _, spec := range specs {
		for _, version := range []string{"latest", release.Number} {
			tag, err := name.NewTag(Host + "/" + spec.Name + ":" + version)
			if err != nil {
				t.Fatal(err)
			}
			image, err := tarball.ImageFromPath(filepath.Join(dir, spec.Name+".tar"), &tag)
			if err != nil {
				t.Fatal(version, err)
			}
			check(t, image, spec)
		}
	}
	if err := WriteAll(Specs, t.TempDir(), dir); err == nil {
		t.Error("images were written without binaries")
	}
}

func TestServeOnlyOnLoopback(t *testing.T) {
	for _, address := range []string{"0.0.0.0:5000", "192.0.2.1:5000", "nonsense"} {
		if err := Serve(t.Context(), address, binaries(t), t.TempDir()); err == nil {
			t.Errorf("served on %s", address)
		}
	}
}

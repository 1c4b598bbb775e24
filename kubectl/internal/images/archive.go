package images

import (
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Host is the registry name under which a cluster's containerd finds the
// images, whatever port the registry has: "kctl.local/demo".
const Host = "kctl.local"

func writeArchive(image v1.Image, imageName, file string) error {
	tag, err := name.NewTag(Host + "/" + imageName + ":latest")
	if err != nil {
		return fmt.Errorf("image %s: %w", imageName, err)
	}
	if err := tarball.WriteToFile(file, tag, image); err != nil {
		return fmt.Errorf("image %s: write %s: %w", imageName, file, err)
	}
	return nil
}

package images

import (
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"kctl/proto/release"
)

// Host is the registry name under which a cluster's containerd finds the
// images, whatever port the registry has: "kctl.local/demo".
const Host = "kctl.local"

// writeArchive tags the image "latest", and with this build's version, which stays on a machine
// when a later release is loaded there: that is the way back.
func writeArchive(image v1.Image, imageName, file string) error {
	tagged := map[name.Tag]v1.Image{}
	for _, version := range []string{"latest", release.Number} {
		tag, err := name.NewTag(Host + "/" + imageName + ":" + version)
		if err != nil {
			return fmt.Errorf("image %s: %w", imageName, err)
		}
		tagged[tag] = image
	}
	if err := tarball.MultiWriteToFile(file, tagged); err != nil {
		return fmt.Errorf("image %s: write %s: %w", imageName, file, err)
	}
	return nil
}

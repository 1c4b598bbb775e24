package machine

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/images"
)

// newRegistry is the process that `kctl up` starts; it is not for users.
func newRegistry() *cobra.Command {
	var listen, binDir, dataDir string
	cmd := &cobra.Command{
		Use:    "registry",
		Short:  "Serve the project's images on loopback",
		Hidden: true,
		Args:   frame.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dataDir == "" {
				return errors.New("--data-dir is required")
			}
			return images.Serve(cmd.Context(), listen, binDir, dataDir)
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:5000", "address on loopback")
	f.StringVar(&binDir, "bin-dir", "", "directory of the binaries for the images")
	f.StringVar(&dataDir, "data-dir", "", "directory for blobs")
	return cmd
}

// newImages writes the project's images to archives, for `make images`.
func newImages() *cobra.Command {
	var binDir, dir string
	cmd := &cobra.Command{
		Use:     "images",
		Short:   "Write the project's images to archives",
		Hidden:  true,
		Example: "  kctl images --dir build/images",
		Args:    frame.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if binDir == "" {
				self, err := os.Executable()
				if err != nil {
					return err
				}
				binDir = filepath.Dir(self)
			}
			return images.WriteAll(slices.Concat(images.Specs, images.ControlPlane), binDir, dir)
		},
	}
	cmd.Flags().StringVar(&binDir, "bin-dir", "", "directory of the binaries (default: that of kctl)")
	cmd.Flags().StringVar(&dir, "dir", "build/images", "directory to write NAME.tar to")
	return cmd
}

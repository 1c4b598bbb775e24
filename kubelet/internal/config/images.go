package config

import (
	"time"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"kctl/kubelet/internal/pullrecords"
)

// ImagePulls is how images are pulled, and for whom.
type ImagePulls struct {
	// CredentialProviderConfig names the plugins that provide credentials for images, and
	// CredentialProviderBinDir the directory of their programs.
	CredentialProviderConfig string
	CredentialProviderBinDir string
	// CredentialsVerification is the policy about who may use images that are on the node.
	CredentialsVerification pullrecords.Policy

	MaxParallel int
	Serialize   bool // one at a time, where MaxParallel does not say
}

func newImagePulls() ImagePulls {
	return ImagePulls{CredentialsVerification: pullrecords.Policy{Verify: kubeletv1beta1.NeverVerifyPreloadedImages}}
}

// AtOnce is how many images are pulled at one time; zero for the default.
func (p *ImagePulls) AtOnce() int {
	if p.Serialize && p.MaxParallel == 0 {
		return 1
	}
	return p.MaxParallel
}

func (p *ImagePulls) validate(add report) {
	if (p.CredentialProviderConfig == "") != (p.CredentialProviderBinDir == "") {
		add("--image-credential-provider-config and --image-credential-provider-bin-dir go together")
	}
	if err := p.CredentialsVerification.Validate(); err != nil {
		add("%w", err)
	}
	if p.Serialize && p.MaxParallel > 1 {
		add("maxParallelImagePulls=%d: serializeImagePulls must be false for more than one", p.MaxParallel)
	}
}

// ImageGC is when unused images are removed.
type ImageGC struct {
	HighThresholdPercent, LowThresholdPercent int32 // percent of their disk that is in use
	MinimumAge, MaximumAge                    time.Duration
}

func newImageGC() ImageGC {
	return ImageGC{HighThresholdPercent: 85, LowThresholdPercent: 80, MinimumAge: 2 * time.Minute}
}

func (g *ImageGC) validate(add report) {
	if g.HighThresholdPercent < 0 || g.HighThresholdPercent > 100 || g.LowThresholdPercent < 0 ||
		g.LowThresholdPercent > 100 {
		add("--image-gc-high-threshold=%d, --image-gc-low-threshold=%d: percentages are needed",
			g.HighThresholdPercent, g.LowThresholdPercent)
	} else if g.LowThresholdPercent >= g.HighThresholdPercent {
		add("--image-gc-low-threshold=%d must be below --image-gc-high-threshold=%d", g.LowThresholdPercent, g.HighThresholdPercent)
	}
	if g.MinimumAge < 0 || g.MaximumAge < 0 || g.MaximumAge > 0 && g.MaximumAge <= g.MinimumAge {
		add("imageMaximumGCAge=%s must be zero or more than imageMinimumGCAge=%s", g.MaximumAge, g.MinimumAge)
	}
}

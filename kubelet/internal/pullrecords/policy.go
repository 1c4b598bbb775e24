package pullrecords

import (
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// Policy says which images are protected.
type Policy struct {
	Verify kubeletv1beta1.ImagePullCredentialsVerificationPolicy
	// Allowed are, with NeverVerifyAllowlistedImages, those that every pod may use:
	// names without tag and digest, or prefixes followed by "/*".
	Allowed []string
}

// Validate checks the policy.
func (p Policy) Validate() error {
	switch p.Verify {
	case kubeletv1beta1.NeverVerify, kubeletv1beta1.NeverVerifyPreloadedImages, kubeletv1beta1.NeverVerifyAllowlistedImages,
		kubeletv1beta1.AlwaysVerify:
	default:
		return fmt.Errorf("imagePullCredentialsVerificationPolicy: unknown policy %q", p.Verify)
	}
	if len(p.Allowed) > 0 && p.Verify != kubeletv1beta1.NeverVerifyAllowlistedImages {
		return fmt.Errorf("preloadedImagesVerificationAllowlist: it goes with imagePullCredentialsVerificationPolicy: %s",
			kubeletv1beta1.NeverVerifyAllowlistedImages)
	}
	for _, pattern := range p.Allowed {
		name, all := strings.CutSuffix(pattern, "/*")
		if bare, err := bareName(name); err != nil || bare != name || strings.Contains(name, "*") || all && name == "" {
			return fmt.Errorf("preloadedImagesVerificationAllowlist: %q is not the name of an image without tag and digest, nor the "+
				"beginning of one with /* behind it", pattern)
		}
	}
	return nil
}

// verifies tells whether a pod has to prove that it may use an image.
func (p Policy) verifies(image string, byKubelet bool) bool {
	switch p.Verify {
	case kubeletv1beta1.NeverVerify:
		return false
	case kubeletv1beta1.NeverVerifyPreloadedImages:
		return byKubelet
	case kubeletv1beta1.NeverVerifyAllowlistedImages:
		return !p.allows(image)
	}
	return true
}

func (p Policy) allows(image string) bool {
	name, err := bareName(image)
	return err == nil && slices.ContainsFunc(p.Allowed, func(pattern string) bool {
		above, all := strings.CutSuffix(pattern, "*")
		return pattern == name || all && strings.HasPrefix(name, above)
	})
}

// bareName is an image's name as a pod has it, without tag and digest.
func bareName(image string) (string, error) {
	parsed, err := reference.Parse(image)
	if err != nil {
		return "", fmt.Errorf("image %q: %w", image, err)
	}
	if digested, ok := parsed.(reference.Digested); ok {
		image = strings.TrimSuffix(image, "@"+digested.Digest().String())
	}
	if tagged, ok := parsed.(reference.Tagged); ok {
		image = strings.TrimSuffix(image, ":"+tagged.Tag())
	}
	return image, nil
}

package kubelet

import (
	"context"
	"fmt"
	"os"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletv1 "k8s.io/kubelet/config/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"kctl/kubelet/internal/credential"
	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/objects"
	"kctl/kubelet/internal/pullrecords"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// newRegistries reads the node's credentials for image registries.
func (g *given) newRegistries(client *rest.Client, objects *objects.Objects) (*credential.NodeCredentials, error) {
	home, _ := os.UserHomeDir() // a service may have none
	o := credential.Options{
		Files: credential.NewFiles(g.config.RootDir, home), BinDir: g.config.Pulls.CredentialProviderBinDir, Clock: g.clock, Registry: g.registry,
	}
	if client != nil {
		o.Accounts = serviceAccounts{client, objects}
	}
	var err error
	if g.config.Pulls.CredentialProviderConfig != "" {
		if o.Plugins, err = g.loadPlugins(); err != nil {
			return nil, err
		}
	}
	return credential.New(o), nil
}

// newImageAccess makes the records of who may use the node's images. Simulated
// images are for everybody.
func (g *given) newImageAccess(ctx context.Context, runtime *cri.Client) (*pullrecords.Records, error) {
	policy := g.config.Pulls.CredentialsVerification
	if g.hollow != nil {
		policy = pullrecords.Policy{Verify: kubeletv1beta1.NeverVerify}
	}
	records, err := pullrecords.New(g.config.RootDir, policy, func() ([]*runtimeapi.Image, error) { return runtime.ListImages(ctx) }, g.clock,
		g.logger)
	if err == nil {
		records.Checked = g.metrics.ImageChecked
	}
	return records, err
}

func (g *given) loadPlugins() ([]kubeletv1.CredentialProvider, error) {
	plugins, err := credential.Load(g.config.Pulls.CredentialProviderConfig, g.config.Pulls.CredentialProviderBinDir)
	if err != nil {
		return nil, fmt.Errorf("--image-credential-provider-config: %w", err)
	}
	return plugins, nil
}

// serviceAccounts tells plugins about pods' service accounts.
type serviceAccounts struct {
	client  *rest.Client
	objects *objects.Objects
}

// tokenSeconds is how long tokens for plugins last.
const tokenSeconds = 3600

// ServiceAccount implements credential.ServiceAccounts.
func (a serviceAccounts) ServiceAccount(ctx context.Context, namespace, name string) (*core.ServiceAccount, error) {
	account := &core.ServiceAccount{}
	return account, a.client.Resource(core.ServiceAccounts, namespace).Get(ctx, name, account)
}

// Token implements credential.ServiceAccounts.
func (a serviceAccounts) Token(ctx context.Context, pod *core.Pod, audience string) (string, error) {
	return a.objects.Token(ctx, pod, audience, tokenSeconds)
}

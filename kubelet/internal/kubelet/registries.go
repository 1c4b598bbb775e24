package kubelet

import (
	"context"
	"fmt"
	"os"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletv1 "k8s.io/kubelet/config/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"kctl/kubelet/internal/credential"
	"kctl/kubelet/internal/objects"
	"kctl/kubelet/internal/pullrecords"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// makeRegistries reads the node's credentials for image registries.
func (k *Kubelet) makeRegistries() (*credential.NodeCredentials, error) {
	home, _ := os.UserHomeDir() // a service may have none
	o := credential.Options{
		Files: credential.NewFiles(k.config.RootDir, home), BinDir: k.config.ImageCredentialProviderBinDir, Clock: k.clock, Registry: k.registry,
	}
	if k.client != nil {
		o.Accounts = serviceAccounts{k.client, k.objects}
	}
	var err error
	if k.config.ImageCredentialProviderConfig != "" {
		if o.Plugins, err = k.loadPlugins(); err != nil {
			return nil, err
		}
	}
	return credential.New(o), nil
}

// makeImageAccess makes the records of who may use the node's images. Simulated
// images are for everybody.
func (k *Kubelet) makeImageAccess(ctx context.Context) (*pullrecords.Records, error) {
	policy := k.config.ImagePullCredentialsVerification
	if k.hollow != nil {
		policy = pullrecords.Policy{Verify: kubeletv1beta1.NeverVerify}
	}
	records, err := pullrecords.New(k.config.RootDir, policy, func() ([]*runtimeapi.Image, error) { return k.cri.ListImages(ctx) }, k.clock, k.logger)
	if err == nil {
		records.Checked = k.metrics.ImageChecked
	}
	return records, err
}

func (k *Kubelet) loadPlugins() ([]kubeletv1.CredentialProvider, error) {
	plugins, err := credential.Load(k.config.ImageCredentialProviderConfig, k.config.ImageCredentialProviderBinDir)
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

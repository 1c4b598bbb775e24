package plugins

import (
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/always"
	"kctl/apiserver/internal/admission/alwayspullimages"
	"kctl/apiserver/internal/admission/antiaffinitytopology"
	"kctl/apiserver/internal/admission/certificates"
	"kctl/apiserver/internal/admission/claimresize"
	"kctl/apiserver/internal/admission/declaredfeatures"
	"kctl/apiserver/internal/admission/defaultclass"
	"kctl/apiserver/internal/admission/defaulttoleration"
	"kctl/apiserver/internal/admission/denyexternalips"
	"kctl/apiserver/internal/admission/eventratelimit"
	"kctl/apiserver/internal/admission/extendedresourcetoleration"
	"kctl/apiserver/internal/admission/imagepolicy"
	"kctl/apiserver/internal/admission/limitranger"
	"kctl/apiserver/internal/admission/namespaceautoprovision"
	"kctl/apiserver/internal/admission/namespaceexists"
	"kctl/apiserver/internal/admission/namespacelifecycle"
	"kctl/apiserver/internal/admission/noderestriction"
	"kctl/apiserver/internal/admission/ownerpermission"
	"kctl/apiserver/internal/admission/podnodeselector"
	"kctl/apiserver/internal/admission/podresize"
	"kctl/apiserver/internal/admission/podsecurity"
	"kctl/apiserver/internal/admission/podtolerationrestriction"
	"kctl/apiserver/internal/admission/podtopology"
	"kctl/apiserver/internal/admission/policy"
	"kctl/apiserver/internal/admission/priority"
	"kctl/apiserver/internal/admission/resourcequota"
	"kctl/apiserver/internal/admission/runtimeclass"
	"kctl/apiserver/internal/admission/serviceaccount"
	"kctl/apiserver/internal/admission/storageprotection"
	"kctl/apiserver/internal/admission/taintnodes"
	"kctl/apiserver/internal/admission/webhook"
	"kctl/apiserver/internal/resources/networking"
	pods "kctl/apiserver/internal/resources/pod"
	"kctl/apiserver/internal/resources/storage"
	"kctl/proto/core"
)

// allPlugins are upstream's plugins, in upstream's order.
var allPlugins = []pluginEntry{
	{name: always.AdmitName, make: withoutDependencies(always.Admit{})},
	{name: namespaceautoprovision.Name, make: func(d *dependencies) (admission.Plugin, error) {
		return namespaceautoprovision.New(d.namespaces, d.store(core.Namespaces)), nil
	}},
	{name: namespacelifecycle.Name, enabledByDefault: true, make: func(d *dependencies) (admission.Plugin, error) {
		return namespacelifecycle.New(d.namespaces), nil
	}},
	{name: namespaceexists.Name, make: func(d *dependencies) (admission.Plugin, error) {
		return namespaceexists.New(d.namespaces), nil
	}},
	{name: antiaffinitytopology.Name, make: withoutDependencies(antiaffinitytopology.Plugin{})},
	{name: limitranger.Name, enabledByDefault: true, make: func(d *dependencies) (admission.Plugin, error) {
		return limitranger.New(d.LimitRanges), nil
	}},
	{name: serviceaccount.Name, enabledByDefault: true, make: func(d *dependencies) (admission.Plugin, error) {
		return serviceaccount.New(find[*core.ServiceAccount](d, core.ServiceAccounts), d.Clock), nil
	}},
	{name: noderestriction.Name, enabledByDefault: true, make: func(d *dependencies) (admission.Plugin, error) {
		return &noderestriction.Plugin{
			Pods: find[*core.Pod](d, core.Pods), Nodes: d.nodes, Accounts: find[*core.ServiceAccount](d, core.ServiceAccounts),
			Claims:  find[*corev1.PersistentVolumeClaim](d, core.PersistentVolumeClaims),
			Volumes: find[*corev1.PersistentVolume](d, core.PersistentVolumes),
			Drivers: find[*storagev1.CSIDriver](d, storage.DriverResource), RangesGiven: d.RangesGiven, Authorizer: d.Authorizer,
		}, nil
	}},
	{name: taintnodes.Name, enabledByDefault: true, make: withoutDependencies(taintnodes.New())},
	{name: alwayspullimages.Name, make: withoutDependencies(alwayspullimages.Plugin{})},
	{name: imagepolicy.Name, configurable: true, make: func(d *dependencies) (admission.Plugin, error) {
		return imagepolicy.New(d.Files, d.Clock, d.OnFileProblem)
	}},
	{name: podsecurity.Name, enabledByDefault: true, configurable: true, make: func(d *dependencies) (admission.Plugin, error) {
		return podsecurity.New(d.namespaces, d.store(core.Pods), d.Files, d.Metrics, d.Clock)
	}},
	{name: podnodeselector.Name, configurable: true, make: func(d *dependencies) (admission.Plugin, error) {
		return podnodeselector.New(d.namespaces, d.Files)
	}},
	{name: priority.Name, enabledByDefault: true, make: func(d *dependencies) (admission.Plugin, error) {
		return priority.New(find[*schedulingv1.PriorityClass](d, core.PriorityClasses), d.DefaultPriority), nil
	}},
	{name: defaulttoleration.Name, enabledByDefault: true, make: func(d *dependencies) (admission.Plugin, error) {
		return d.Tolerations, nil
	}},
	{name: podtolerationrestriction.Name, configurable: true, make: func(d *dependencies) (admission.Plugin, error) {
		return podtolerationrestriction.New(d.namespaces, pods.BestEffort, d.Files)
	}},
	{name: eventratelimit.Name, configurable: true, make: func(d *dependencies) (admission.Plugin, error) {
		return eventratelimit.New(d.Files, d.Clock)
	}},
	{name: extendedresourcetoleration.Name, make: withoutDependencies(extendedresourcetoleration.Plugin{})},
	{name: defaultclass.StorageName, enabledByDefault: true, make: func(d *dependencies) (admission.Plugin, error) {
		return defaultclass.ForClaims{Classes: d.store(storage.ClassResource)}, nil
	}},
	{name: storageprotection.Name, enabledByDefault: true, make: withoutDependencies(storageprotection.Plugin{})},
	{name: "PodGroupProtection", enabledByDefault: true, make: withoutDependencies(noopPlugin{})},
	{name: ownerpermission.Name, make: func(d *dependencies) (admission.Plugin, error) {
		return &ownerpermission.Plugin{Authorizer: d.Authorizer, Resource: d.Resource}, nil
	}},
	{name: claimresize.Name, enabledByDefault: true, make: func(d *dependencies) (admission.Plugin, error) {
		return claimresize.Plugin{Classes: find[*storagev1.StorageClass](d, storage.ClassResource)}, nil
	}},
	{name: runtimeclass.Name, enabledByDefault: true, make: func(d *dependencies) (admission.Plugin, error) {
		return runtimeclass.New(find[*nodev1.RuntimeClass](d, core.RuntimeClasses)), nil
	}},
	{name: certificates.ApprovalName, enabledByDefault: true, make: func(d *dependencies) (admission.Plugin, error) {
		return certificates.Approval{Authorizer: d.Authorizer}, nil
	}},
	{name: certificates.SigningName, enabledByDefault: true, make: func(d *dependencies) (admission.Plugin, error) {
		return certificates.Signing{Authorizer: d.Authorizer}, nil
	}},
	{name: certificates.AttestName, enabledByDefault: true, make: func(d *dependencies) (admission.Plugin, error) {
		return certificates.Attest{Authorizer: d.Authorizer}, nil
	}},
	{name: certificates.SubjectName, enabledByDefault: true, make: withoutDependencies(certificates.Subject{})},
	{name: defaultclass.IngressName, enabledByDefault: true, make: func(d *dependencies) (admission.Plugin, error) {
		return defaultclass.ForIngresses{Classes: d.store(networking.IngressClassResource)}, nil
	}},
	{name: denyexternalips.Name, make: withoutDependencies(denyexternalips.Plugin{})},
	{name: podtopology.Name, enabledByDefault: true, make: func(d *dependencies) (admission.Plugin, error) {
		return podtopology.Plugin{Nodes: d.store(core.Nodes)}, nil
	}},
	{name: declaredfeatures.Name, enabledByDefault: true, make: func(d *dependencies) (admission.Plugin, error) {
		return declaredfeatures.New(d.nodes)
	}},
	{name: podresize.Name, enabledByDefault: true, make: func(d *dependencies) (admission.Plugin, error) {
		return podresize.Plugin{Nodes: d.nodes}, nil
	}},
	{
		name: policy.MutatingName, enabledByDefault: true, configurable: true,
		make: func(d *dependencies) (admission.Plugin, error) { return d.MutatingPolicies, nil },
	},
	{
		name: webhook.MutatingName, enabledByDefault: true, configurable: true,
		make: func(d *dependencies) (admission.Plugin, error) { return d.MutatingWebhooks, nil },
	},
	{
		name: policy.ValidatingName, enabledByDefault: true, configurable: true,
		make: func(d *dependencies) (admission.Plugin, error) { return d.ValidatingPolicies, nil },
	},
	{
		name: webhook.ValidatingName, enabledByDefault: true, configurable: true,
		make: func(d *dependencies) (admission.Plugin, error) { return d.ValidatingWebhooks, nil },
	},
	{name: resourcequota.Name, enabledByDefault: true, configurable: true, make: func(d *dependencies) (admission.Plugin, error) {
		return resourcequota.New(d.Quotas, d.QuotaRules, d.Files)
	}},
	{name: always.DenyName, make: withoutDependencies(always.Deny{})},
}

// withoutDependencies is for plugins without dependencies.
func withoutDependencies(p admission.Plugin) func(*dependencies) (admission.Plugin, error) {
	return func(*dependencies) (admission.Plugin, error) { return p, nil }
}

// noopPlugin stands for an upstream plugin that guards a kind which is not served: it
// has nothing to do.
type noopPlugin struct{}

// Handles nothing.
func (noopPlugin) Handles(admission.Operation) bool { return false }

package describe

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The parts that layouts read of kinds whose Go types kctl does without: each
// API group that is linked in makes the program some hundred kilobytes bigger.

type ingress struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		IngressClassName *string  `json:"ingressClassName"`
		DefaultBackend   *backend `json:"defaultBackend"`
		TLS              []struct {
			Hosts      []string `json:"hosts"`
			SecretName string   `json:"secretName"`
		} `json:"tls"`
		Rules []struct {
			Host string `json:"host"`
			HTTP *struct {
				Paths []struct {
					Path    string  `json:"path"`
					Backend backend `json:"backend"`
				} `json:"paths"`
			} `json:"http"`
		} `json:"rules"`
	} `json:"spec"`
	Status struct {
		LoadBalancer struct {
			Ingress []struct {
				IP       string `json:"ip"`
				Hostname string `json:"hostname"`
			} `json:"ingress"`
		} `json:"loadBalancer"`
	} `json:"status"`
}

type backend struct {
	Service  *ServiceBackend                   `json:"service"`
	Resource *corev1.TypedLocalObjectReference `json:"resource"`
}

// ServiceBackend is a service that an ingress leads to.
type ServiceBackend struct {
	Name string `json:"name"`
	Port struct {
		Name   string `json:"name"`
		Number int32  `json:"number"`
	} `json:"port"`
}

type ingressClass struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Controller string                            `json:"controller"`
		Parameters *corev1.TypedLocalObjectReference `json:"parameters"`
	} `json:"spec"`
}

type networkPolicy struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		PodSelector metav1.LabelSelector `json:"podSelector"`
		PolicyTypes []string             `json:"policyTypes"`
		Ingress     []rule               `json:"ingress"`
		Egress      []rule               `json:"egress"`
	} `json:"spec"`
}

// rule is one of a policy's rules, of either direction.
type rule struct {
	Ports []policyPort `json:"ports"`
	From  []policyPeer `json:"from"`
	To    []policyPeer `json:"to"`
}

type policyPort struct {
	Protocol *corev1.Protocol    `json:"protocol"`
	Port     *intstr.IntOrString `json:"port"`
	EndPort  *int32              `json:"endPort"`
}

type policyPeer struct {
	PodSelector       *metav1.LabelSelector `json:"podSelector"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	IPBlock           *struct {
		CIDR   string   `json:"cidr"`
		Except []string `json:"except"`
	} `json:"ipBlock"`
}

type storageClass struct {
	metav1.ObjectMeta    `json:"metadata"`
	Provisioner          string            `json:"provisioner"`
	Parameters           map[string]string `json:"parameters"`
	ReclaimPolicy        *string           `json:"reclaimPolicy"`
	MountOptions         []string          `json:"mountOptions"`
	AllowVolumeExpansion *bool             `json:"allowVolumeExpansion"`
	VolumeBindingMode    *string           `json:"volumeBindingMode"`
	AllowedTopologies    []struct {
		MatchLabelExpressions []struct {
			Key    string   `json:"key"`
			Values []string `json:"values"`
		} `json:"matchLabelExpressions"`
	} `json:"allowedTopologies"`
}

type storageNode struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Drivers []storageDriver `json:"drivers"`
	} `json:"spec"`
}

type storageDriver struct {
	Name         string   `json:"name"`
	NodeID       string   `json:"nodeID"`
	TopologyKeys []string `json:"topologyKeys"`
	Allocatable  *struct {
		Count *int32 `json:"count"`
	} `json:"allocatable"`
}

type signingRequest struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Request           []byte `json:"request"`
		SignerName        string `json:"signerName"`
		ExpirationSeconds *int32 `json:"expirationSeconds"`
		Username          string `json:"username"`
	} `json:"spec"`
	Status struct {
		Conditions  []condition `json:"conditions"`
		Certificate []byte      `json:"certificate"`
	} `json:"status"`
}

type autoscaler struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ScaleTargetRef corev1.ObjectReference `json:"scaleTargetRef"`
		MinReplicas    *int32                 `json:"minReplicas"`
		MaxReplicas    int32                  `json:"maxReplicas"`
		Metrics        []metricSpec           `json:"metrics"`
		Behavior       *struct {
			ScaleUp   *scalingRules `json:"scaleUp"`
			ScaleDown *scalingRules `json:"scaleDown"`
		} `json:"behavior"`
	} `json:"spec"`
	Status struct {
		CurrentReplicas int32        `json:"currentReplicas"`
		DesiredReplicas int32        `json:"desiredReplicas"`
		CurrentMetrics  []metricSpec `json:"currentMetrics"`
		Conditions      []condition  `json:"conditions"`
	} `json:"status"`
}

type scalingRules struct {
	StabilizationWindowSeconds *int32  `json:"stabilizationWindowSeconds"`
	SelectPolicy               *string `json:"selectPolicy"`
	Policies                   []struct {
		Type          string `json:"type"`
		Value         int32  `json:"value"`
		PeriodSeconds int32  `json:"periodSeconds"`
	} `json:"policies"`
}

// metricSpec is a metric, with its target in the spec and what is in the status.
type metricSpec struct {
	Type              string        `json:"type"`
	Resource          *metricSource `json:"resource"`
	ContainerResource *metricSource `json:"containerResource"`
	Pods              *metricSource `json:"pods"`
	Object            *metricSource `json:"object"`
	External          *metricSource `json:"external"`
}

type metricSource struct {
	Name      string `json:"name"`
	Container string `json:"container"`
	Metric    struct {
		Name string `json:"name"`
	} `json:"metric"`
	DescribedObject corev1.ObjectReference `json:"describedObject"`
	Target          metricValue            `json:"target"`
	Current         metricValue            `json:"current"`
}

type metricValue struct {
	Type               string             `json:"type"`
	Value              *resource.Quantity `json:"value"`
	AverageValue       *resource.Quantity `json:"averageValue"`
	AverageUtilization *int32             `json:"averageUtilization"`
}

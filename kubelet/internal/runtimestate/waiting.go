package runtimestate

// Waiting is the reason and message of a container state Waiting in the API.
type Waiting struct {
	Reason  string
	Message string
}

// Reasons of waiting, as upstream writes them. Those about images are the image
// package's.
const (
	ReasonContainerCreating      = "ContainerCreating"
	ReasonPodInitializing        = "PodInitializing"
	ReasonCrashLoopBackOff       = "CrashLoopBackOff"
	ReasonCreateContainerConfig  = "CreateContainerConfigError"
	ReasonCreateContainer        = "CreateContainerError"
	ReasonRunContainer           = "RunContainerError"
	ReasonPostStartHook          = "PostStartHookError"
	ReasonKillContainer          = "KillContainerError"
	ReasonContainerStatusUnknown = "ContainerStatusUnknown"
)

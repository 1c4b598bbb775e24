package image

import "time"

// Reasons, as upstream writes them into a container's waiting state.
const (
	ReasonErrPull             = "ErrImagePull"
	ReasonPullBackOff         = "ImagePullBackOff"
	ReasonNeverPull           = "ErrImageNeverPull"
	ReasonInvalidName         = "InvalidImageName"
	ReasonInspect             = "ImageInspectError"
	ReasonRegistryUnavailable = "RegistryUnavailable"
	ReasonSignature           = "SignatureValidationFailed"
)

// Error is why a container has no image.
type Error struct {
	Reason  string // for the container's waiting state
	Message string // for users
	// RetryAfter is when trying again can help; zero leaves that to the caller's
	// own retries.
	RetryAfter time.Duration
	Err        error // the cause; nil if the user's request is the only one
}

func (e *Error) Error() string { return e.Reason + ": " + e.Message }
func (e *Error) Unwrap() error { return e.Err }

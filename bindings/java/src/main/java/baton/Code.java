package baton;

/** The kinds of failures of the library. */
public enum Code {
    OK(0), // BATON_OK
    INVALID(-1), // BATON_E_INVALID
    TIMING(-2), // BATON_E_TIMING
    URL(-3), // BATON_E_URL
    NO_DRIVER(-4), // BATON_E_NO_DRIVER
    MEMORY(-5), // BATON_E_MEMORY
    SYSTEM(-6), // BATON_E_SYSTEM
    NOT_STARTED(-7), // BATON_E_NOT_STARTED
    NOT_LEADER(-8), // BATON_E_NOT_LEADER
    TIMEOUT(-9), // BATON_E_TIMEOUT
    EXISTS(-10), // BATON_E_EXISTS
    UNAVAILABLE(-11), // BATON_E_UNAVAILABLE
    DENIED(-12), // BATON_E_DENIED
    CORRUPT(-13), // BATON_E_CORRUPT
    UNSUPPORTED(-14), // BATON_E_UNSUPPORTED
    NO_CANDIDATE(-15), // BATON_E_NO_CANDIDATE
    STALE(-16), // BATON_E_STALE
    FORKED(-17), // BATON_E_FORKED
    BUSY(-18), // BATON_E_BUSY
    DUPLICATE_ID(-19); // BATON_E_DUPLICATE_ID

    public final int number;

    Code(int number) {
        this.number = number;
    }

    static Code of(int number) {
        return -number >= 0 && -number < values().length ? values()[-number] : SYSTEM;
    }
}

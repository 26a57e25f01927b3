package baton;

/** A failure of the library: its code, and one sentence. */
public final class BatonException extends RuntimeException {
    private static final long serialVersionUID = 1;
    private final int number;

    BatonException(int number, String text) {
        super(text);
        this.number = number;
    }

    public Code code() {
        return Code.of(number);
    }

    public int number() {
        return number;
    }

    /** The code's name in one word: "timeout". */
    public String codeName() {
        return Lib.text(Lib.baton_code_name(number));
    }
}

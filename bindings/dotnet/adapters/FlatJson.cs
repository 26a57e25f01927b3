// FlatJson.cs: metadata with names, as a JSON object of strings: what others see of a candidate stays
// readable. Whatever is no such object is read as one entry named "text".
using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace Baton.Excalibur
{
    internal static class FlatJson
    {
        internal static string Write(IDictionary<string, string> map)
        {
            var b = new StringBuilder("{");
            foreach (var pair in map)
            {
                if (b.Length > 1)
                    b.Append(",");
                Quote(b, pair.Key);
                b.Append(":");
                Quote(b, pair.Value ?? "");
            }
            return b.Append("}").ToString();
        }

        static void Quote(StringBuilder b, string text)
        {
            b.Append('"');
            foreach (char c in text)
                if (c == '"' || c == '\\')
                    b.Append('\\').Append(c);
                else if (c < ' ')
                    b.AppendFormat("\\u{0:x4}", (int)c);
                else
                    b.Append(c);
            b.Append('"');
        }

        internal static IDictionary<string, string> Read(string text) =>
            ReadObject(text) ?? new Dictionary<string, string> { ["text"] = text };

        // null: it is none.
        static IDictionary<string, string> ReadObject(string text)
        {
            var map = new Dictionary<string, string>();
            int at = 0;
            if (text == "")
                return map;
            if (!Skip(text, ref at, '{'))
                return null;
            if (!Skip(text, ref at, '}'))
            {
                do
                {
                    string key = Unquote(text, ref at);
                    string value = key != null && Skip(text, ref at, ':') ? Unquote(text, ref at)
                        : null;
                    if (value == null)
                        return null;
                    map[key] = value;
                } while (Skip(text, ref at, ','));
                if (!Skip(text, ref at, '}'))
                    return null;
            }
            return string.IsNullOrWhiteSpace(text.Substring(at)) ? map : null;
        }

        // With the blanks before it.
        static bool Skip(string text, ref int at, char c)
        {
            while (at < text.Length && " \t\r\n".IndexOf(text[at]) >= 0)
                at++;
            if (at >= text.Length || text[at] != c)
                return false;
            at++;
            return true;
        }

        static string Unquote(string text, ref int at)
        {
            var b = new StringBuilder();
            if (!Skip(text, ref at, '"'))
                return null;
            for (; at < text.Length && text[at] != '"'; at++)
            {
                char c = text[at];
                if (c == '\\' && !Unescape(text, ref at, out c))
                    return null;
                b.Append(c);
            }
            return at++ < text.Length ? b.ToString() : null;
        }

        // at is the backslash, and afterwards the last character of what it begins.
        static bool Unescape(string text, ref int at, out char c)
        {
            const string Names = "\"\\/bfnrt", Characters = "\"\\/\b\f\n\r\t";
            ushort number;
            c = '\0';
            if (++at >= text.Length)
                return false;
            int known = Names.IndexOf(text[at]);
            if (known >= 0)
                c = Characters[known];
            else if (text[at] == 'u' && at + 4 < text.Length && ushort.TryParse(
                text.Substring(at + 1, 4), NumberStyles.AllowHexSpecifier,
                CultureInfo.InvariantCulture, out number))
            {
                c = (char)number;
                at += 4;
            }
            else
                return false;
            return true;
        }
    }
}
